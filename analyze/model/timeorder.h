/* SPDX-License-Identifier: MIT */
/*
 * timeorder.h: the events of all streams of a recording in one order, by time. Each stream keeps
 * its own order. Between streams times decide, window by window: within one, whose length is about
 * what the clocks of threads are right to, a stream's events come together.
 *
 * Called by analyze/model/replay. Belongs to one thread. Memory: one block of each stream that is
 * at work at that time.
 */
#ifndef ANALYZE_MODEL_TIMEORDER_H
#define ANALYZE_MODEL_TIMEORDER_H

#include "analyze/read/recording.h"

/* One event, its window, its stream (a place below timeorder.stream_count) and whose that is. */
struct timeorder_event {
    struct event event; /* without its text */
    uint64_t window;
    uint32_t stream;
    uint32_t thread;
};

struct timeorder {
    const struct recording *recording;
    unsigned window_shift; /* a window is 2^window_shift ns long */
    struct timeorder_stream *streams;
    size_t stream_count;
    uint32_t *queue; /* a heap of streams that have events left, by the time of their next one */
    size_t queue_size;
    size_t *blocks; /* places in recording->blocks, each stream's together and in its order */
    uint64_t window;
    uint32_t current; /* the stream whose events come now, if is_running */
    bool is_running;
    uint64_t damaged; /* blocks that could not be read to their end */
    uint64_t gaps;    /* places where a stream lacks something */
};

/* 0, or -1: out of memory. */
int timeorder_start(struct timeorder *order, const struct recording *recording);
void timeorder_end(struct timeorder *order);

/* Fills up to `capacity` events. Returns their number; 0: that was all. */
size_t timeorder_read(struct timeorder *order, struct timeorder_event *events, size_t capacity);

#endif
