/* SPDX-License-Identifier: MIT */
/*
 * lookup.h: the addresses of a host by its name, found by a thread of the C library's: a name
 * server that is gone holds nobody up who was asked to end.
 *
 * One thread.
 */
#ifndef STREAM_LOOKUP_H
#define STREAM_LOOKUP_H

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

#endif
