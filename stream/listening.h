/* SPDX-License-Identifier: MIT */
/*
 * listening.h: sockets that wait for others, and the first byte that these say.
 *
 * Called by stream/gatherer and stream/offering. Any thread.
 */
#ifndef STREAM_LISTENING_H
#define STREAM_LISTENING_H

#include "stream/channel.h"

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

#endif
