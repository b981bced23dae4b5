/* SPDX-License-Identifier: MIT */
/*
 * discovery.h: machines that find each other by UDP on IPv4: who looks asks all of its networks,
 * who was told to be found answers. Nothing is sent unasked. Without a token only this machine is
 * asked and answered.
 *
 * Called by stream/gatherer and stream/offering (to be found), stream/sender and cli (to find).
 */
#ifndef STREAM_DISCOVERY_H
#define STREAM_DISCOVERY_H

#include "stream/discoverpacket.h"

#include <netinet/in.h>
#include <signal.h>

/* ---- To be found ---- */

struct discovery_beacon;

/* Answers from now on, where `fd` can be read. listener: the TCP socket to tell of. kind, what: as
 * in an answer. NULL: error. */
struct discovery_beacon *discovery_open(uint16_t port, const struct token *token,
                                        enum discover_kind kind, int listener, const char *what,
                                        const uint8_t id[DISCOVER_ID],
                                        void (*tell)(const char *line), struct error *error);
int discovery_fd(const struct discovery_beacon *beacon); /* -1 for NULL */
/* What has come. count: recordings that can be pulled now; what: as at the opening, where it has
 * become known since, or NULL. */
void discovery_answer(struct discovery_beacon *beacon, uint32_t count, const char *what);
/* Says what was ignored. NULL is allowed. */
void discovery_close(struct discovery_beacon *beacon);

/* An id of the name of a folder on this machine, so that it is the same the next time. */
void discovery_id(const char *name, uint8_t id[DISCOVER_ID]);

/* ---- To find ---- */

struct discovery_found {
    struct discover_answer answer;
    char address[CHANNEL_HOST]; /* to connect to, with answer.port */
    char shown[CHANNEL_SHOWN + CHANNEL_HOST];
};

/* Asks for up to wait_ns, and calls found() for each that answers, once; it returns false to stop.
 * 0; -1: nobody could be asked (error). */
int discovery_ask(uint16_t port, const struct token *token, uint32_t kinds, uint64_t wait_ns,
                  const volatile sig_atomic_t *stop,
                  bool (*found)(void *context, const struct discovery_found *one), void *context,
                  struct error *error);

/* "auto" in place of a host, or "auto@ID": that one gatherer alone. */
bool discovery_is_auto(const char *host);
/* The gatherer that is meant, within a second. 1; 0: none answers; -1: error. */
int discovery_find_gatherer(const char *host, uint16_t port, const struct token *token,
                            const volatile sig_atomic_t *stop, struct discovery_found *gatherer,
                            struct error *error);
/* The host that means this one alone. */
void discovery_auto_host(const uint8_t id[DISCOVER_ID], char host[CHANNEL_HOST]);

#endif
