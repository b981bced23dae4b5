/* SPDX-License-Identifier: MIT */
/*
 * peakbound.h: how far a replayed maximum may be off. Within a window of time the events of several
 * streams have no known order among each other, and a stream's clock may be late by one window. In
 * any order that the times allow, live bytes stay between what the streams' lowest and highest
 * points in the two windows add up to.
 *
 * Called by analyze/model/replay: runs of one stream in one window, windows upwards. Belongs to one
 * thread.
 */
#ifndef ANALYZE_MODEL_PEAKBOUND_H
#define ANALYZE_MODEL_PEAKBOUND_H

#include <stddef.h>
#include <stdint.h>

/* How a stream's own share of live bytes moved within its last run. */
struct peakbound_run {
    uint64_t window;
    int64_t rise; /* >= 0: its highest point, from where the run began */
    int64_t fall; /* <= 0: its lowest */
    int64_t change;
};

/* Of all runs of a window, each together with the same stream's run of the window before. */
struct peakbound_pair {
    int64_t rise;
    int64_t fall;
    int64_t best; /* the largest rise - fall of one stream */
};

struct peakbound {
    struct peakbound_run *last; /* one a stream */
    size_t stream_count;
    struct peakbound_run run; /* that goes on */
    size_t stream;            /* whose */
    uint64_t window;
    int64_t live;                 /* where the window before `window` began */
    int64_t now;                  /* where `window` began */
    int64_t change;               /* of all runs of `window` that are over */
    struct peakbound_pair before; /* of the window before, alone */
    struct peakbound_pair pair;   /* of both */
    struct peakbound_pair alone;  /* of this window */
    int64_t highest;              /* the maximum is not above */
    int64_t lowest;               /* and not below */
    size_t streams_seen;          /* 2: more than one */
};

/* 0, or -1: out of memory. */
int peakbound_start(struct peakbound *bound, size_t stream_count);
void peakbound_free(struct peakbound *bound);
/* From here on the events are of this stream and window. */
void peakbound_run(struct peakbound *bound, size_t stream, uint64_t window);
/* The largest difference between `maximum` and what it may have been. Ends the last run. */
uint64_t peakbound_error(struct peakbound *bound, uint64_t maximum);

/* An event of the present run. */
static inline void peakbound_change(struct peakbound *bound, int64_t bytes) {
    struct peakbound_run *run = &bound->run;
    run->change += bytes;
    if (run->change > run->rise) {
        run->rise = run->change;
    } else if (run->change < run->fall) {
        run->fall = run->change;
    }
}

#endif
