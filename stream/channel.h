/* SPDX-License-Identifier: MIT */
/*
 * channel.h: a connection whose bytes nobody else reads or writes: TLS 1.3 with a key that both
 * sides make of the same token; without a token the bare socket, on this machine alone. And how it
 * comes about: sockets that wait for others, and how another machine is reached.
 *
 * Called by all of stream. Sockets are non-blocking. Belongs to one thread; what listens does not.
 */
#ifndef STREAM_CHANNEL_H
#define STREAM_CHANNEL_H

#include "analyze/base/error.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* ---- What proves who somebody is ---- */

struct token;

/* From a file that nobody but its owner may read or write: 16 bytes or more, spaces and line ends
 * around it do not count. NULL: error. */
struct token *token_read(const char *path, struct error *error);
void token_free(struct token *token); /* NULL is allowed */

/* Proves that whoever wrote these bytes knows the token: HMAC-SHA256 with a key of its own, made of
 * it for this alone. */
enum { TOKEN_PROOF = 32 };
void token_prove(const struct token *token, const void *bytes, size_t size,
                 uint8_t proof[TOKEN_PROOF]);
bool token_is_proved(const struct token *token, const void *bytes, size_t size,
                     const uint8_t proof[TOKEN_PROOF]);

/* ---- Addresses ---- */

/* "HOST", "HOST:PORT", "[IPV6]:PORT": host gets "" for an empty one. 0, or -1: error. */
enum { CHANNEL_HOST = 256, CHANNEL_PORT = 6364 };
int channel_split(const char *text, char host[CHANNEL_HOST], uint16_t *port, struct error *error);
/* The same of whom to connect to: there are a host and a port. */
int channel_peer(const char *text, char host[CHANNEL_HOST], uint16_t *port, struct error *error);
bool channel_is_loopback(const struct sockaddr *address);
/* "127.0.0.1:4242", "[::1]:4242" */
enum { CHANNEL_SHOWN = 80 };
void channel_show(const struct sockaddr *address, char shown[CHANNEL_SHOWN]);

/* ---- Connections ---- */

struct channel {
    int fd;           /* -1: none */
    void *ssl;        /* NULL: the bare socket */
    bool is_ready;    /* no handshake is to be done any more */
    bool wants_write; /* the last call could not go on before the socket can be written */
};
#define CHANNEL_NONE ((struct channel){.fd = -1})

/* Takes over a connected socket. token NULL: no TLS. 0, or -1: out of memory; the socket is closed.
 */
int channel_open(struct channel *channel, int fd, bool is_server, const struct token *token);
void channel_close(struct channel *channel);
/* No TLS after all: before any handshake. */
void channel_make_bare(struct channel *channel);

/* 1: ready; 0: call again when the socket is; -1: it failed, error says why in half a sentence. */
int channel_handshake(struct channel *channel, struct error *error);
/* Bytes read or written; 0: none now; -1: the connection is lost, error says why. */
ssize_t channel_read(struct channel *channel, void *bytes, size_t size, struct error *error);
ssize_t channel_write(struct channel *channel, const void *bytes, size_t size, struct error *error);

/* ---- Who waits for others ---- */

/* A socket that listens at this address, not blocking; host "": this machine's own. Without a token
 * no other machine is listened to. -1: error. */
int listening_open(const char *host, uint16_t port, const struct token *token, struct error *error);
/* Where it listens, as people are told. */
void listening_show(int fd, char shown[CHANNEL_SHOWN]);
/* The same for who is to connect: where it listens at all addresses, this machine's name. */
void listening_show_name(int fd, char shown[CHANNEL_SHOWN]);
/* The next connection, not blocking, with whose it is; -1: errno. */
int listening_accept(int fd, char peer[CHANNEL_SHOWN]);

/* As many descriptors as may be: a connection takes two. How many that is. */
size_t listening_raise_limit(void);

/* One side has a token and the other has none: both are to learn it in words of their own. */
enum listening_first {
    LISTENING_LATER,   /* nothing has come yet */
    LISTENING_FINE,    /* TLS where there is a token, none where not */
    LISTENING_LEFT,    /* it went away */
    LISTENING_REFUSED, /* it was told why; *why is for us. The channel is bare, to be closed when
                          the other side has read it */
};
enum listening_first listening_look(struct channel *channel, bool wants_tls, const char **why);

/* ---- Who goes to others ---- */

struct lookup;

/* For TCP. NULL: out of memory. */
struct lookup *lookup_begin(const char *host, uint16_t port);
/* EAI_INPROGRESS; another reason (gai_strerror()); or 0 with the addresses, which lookup_end()
 * frees. */
int lookup_result(const struct lookup *lookup, const struct addrinfo **addresses);
/* Of such a reason: whether it will be the same next time. */
bool lookup_is_final(int reason);
/* Waits for the result, or a signal, or for so long. */
void lookup_wait(const struct lookup *lookup, unsigned ms);
/* NULL is allowed. What is under way goes on by itself, and its memory is given up. */
void lookup_end(struct lookup *lookup);

/* What became of a connect() that is over: 0, and what is written is sent at once; or errno. */
int connecting_result(int fd);

#define BACKOFF_LEAST (UINT64_C(250) * 1000000)

/* Between half of `backoff` and all of it: many that lost the same machine are not to come back at
 * once. The next time is twice as long, up to 30 s. */
uint64_t backoff_next(uint64_t *backoff_ns);

#endif
