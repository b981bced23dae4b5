/* SPDX-License-Identifier: MIT */
/*
 * channel.h: a connection whose bytes nobody else reads or writes: TLS 1.3 with a key that both
 * sides make of the same token; without a token the bare socket, on this machine alone.
 *
 * Called by stream/sender and stream/gatherer. Sockets are non-blocking. Belongs to one thread.
 */
#ifndef STREAM_CHANNEL_H
#define STREAM_CHANNEL_H

#include "analyze/base/error.h"

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

#endif
