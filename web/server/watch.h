/* SPDX-License-Identifier: MIT */
/*
 * watch.h: a thread that sees when those who wait for an answer are gone, and ends connections that
 * take too long to say what they want.
 *
 * A suspended connection of libmicrohttpd does not notice the end of its peer (microhttpd.h says
 * so), so their sockets are polled here for POLLRDHUP. Called by http.c.
 */
#ifndef WEB_SERVER_WATCH_H
#define WEB_SERVER_WATCH_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct watch;

/* Somebody who is waited for. `gone` is called at most once, in the watching thread, and not any
 * more once watch_remove() has returned; it may not call functions of this file. */
struct watch_entry {
    int fd;
    void (*gone)(struct watch_entry *entry);
    int64_t deadline_ms; /* of the monotonic clock: it is gone then; 0: never */
    bool minds_peer;     /* the peer's end is looked for, too */
    bool is_gone;
    struct watch_entry *next, *before;
};

struct watch *watch_start(struct error *error); /* NULL: error is set */
void watch_stop(struct watch *watch);           /* NULL is allowed; nothing is in it any more */

void watch_add(struct watch *watch, struct watch_entry *entry);
/* Of one that is in it. */
void watch_remove(struct watch *watch, struct watch_entry *entry);

int64_t watch_now_ms(void);

#endif
