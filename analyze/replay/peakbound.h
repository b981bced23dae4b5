/* SPDX-License-Identifier: MIT */
/*
 * peakbound.h: how far a replayed maximum may be off. Within a window of time the events of several
 * streams have no known order among each other, and a stream's clock may be late by one window. In
 * any order that the times allow, live bytes stay between what the streams' lowest and highest
 * points in the two windows add up to.
 *
 * Called by analyze/window/wholemodel, windows upwards. Belongs to one thread.
 */
#ifndef ANALYZE_REPLAY_PEAKBOUND_H
#define ANALYZE_REPLAY_PEAKBOUND_H

#include "analyze/model/wrap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a stream's own share of live bytes moved within a window. */
struct peakbound_run {
    uint64_t window;
    int64_t rise; /* >= 0: its highest point, from where the window began */
    int64_t fall; /* <= 0: its lowest */
    int64_t change;
};

struct peakbound_stream {
    struct peakbound_run now;
    struct peakbound_run before; /* of the last window in which it did something */
};

/* Of all streams, in a window or in two that follow each other. */
struct peakbound_sum {
    int64_t rise;
    int64_t fall;
    int64_t best; /* the largest rise - fall of one stream */
};

struct peakbound {
    struct peakbound_stream *streams;
    size_t *active; /* streams that did something in this window */
    size_t active_count;
    struct peakbound_stream *current;
    uint64_t window;
    int64_t live;               /* where the window before `window` began */
    int64_t now;                /* where `window` began */
    struct peakbound_sum alone; /* of the window before */
    int64_t highest;            /* the maximum is not above */
    int64_t lowest;             /* and not below */
    int64_t widest;             /* how far the maximum of a window may be off; reset it at will */
    bool is_shared;             /* more than one stream did something */
};

/* It belongs to the present job. */
void peakbound_start(struct peakbound *bound, size_t stream_count);
/* More streams, behind those that there are. */
void peakbound_grow(struct peakbound *bound, size_t from_count, size_t stream_count);
/* Frees it early. */
void peakbound_free(struct peakbound *bound);
/* From here on the events are of this stream and window; it may have had some in it before. */
void peakbound_run(struct peakbound *bound, size_t stream, uint64_t window);
/* The largest difference between `maximum` and what it may have been. Ends the last window. */
uint64_t peakbound_error(struct peakbound *bound, uint64_t maximum);

/* An event of the present run. */
static inline void peakbound_change(struct peakbound *bound, int64_t bytes) {
    struct peakbound_run *run = &bound->current->now;
    run->change = wrap_add(run->change, bytes);
    if (run->change > run->rise) {
        run->rise = run->change;
    } else if (run->change < run->fall) {
        run->fall = run->change;
    }
}

#endif
