/* SPDX-License-Identifier: MIT */
/*
 * ahead.h: a thread that unpacks and decodes a recording while another replays what came before.
 *
 * Called by analyze/replay/pass, by one thread. Between start and stop the timeorder belongs to the
 * thread inside. Where others need the processors more there is none: what is asked for is read
 * then.
 */
#ifndef ANALYZE_REPLAY_AHEAD_H
#define ANALYZE_REPLAY_AHEAD_H

#include "analyze/replay/timeorder.h"

enum { AHEAD_EVENTS = 512 }; /* of a batch: a few batches fit a core's cache */

struct ahead_batch {
    size_t count;
    struct timeorder_event events[AHEAD_EVENTS];
};

struct ahead;

struct ahead *ahead_start(struct timeorder *order,
                          bool is_alone); /* NULL: no memory or no thread */
/* The next batch, until the next call. NULL: that was all. */
const struct ahead_batch *ahead_next(struct ahead *ahead);
/* Also before the end. NULL is allowed. */
void ahead_stop(struct ahead *ahead);

#endif
