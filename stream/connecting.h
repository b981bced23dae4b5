/* SPDX-License-Identifier: MIT */
/*
 * connecting.h: how another machine is reached: the addresses of its name, found by a thread of the
 * C library's (a name server that is gone holds nobody up who was asked to end), whether it answers
 * there, and how long to wait before that is tried again.
 *
 * Called by stream/sender and stream/puller. One thread.
 */
#ifndef STREAM_CONNECTING_H
#define STREAM_CONNECTING_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

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
