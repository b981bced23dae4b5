/* SPDX-License-Identifier: MIT */
/* peakbound.c: the bound of a replayed maximum's error. See peakbound.h. */
#include "analyze/replay/peakbound.h"

#include "analyze/base/job.h"

#include <string.h>

#define NO_WINDOW UINT64_MAX

void peakbound_start(struct peakbound *bound, size_t stream_count) {
    *bound = (struct peakbound){.streams = job_array(stream_count + 1, sizeof *bound->streams),
                                .active = job_array(stream_count + 1, sizeof *bound->active),
                                .window = NO_WINDOW};
    for (size_t i = 0; i < stream_count; i++) {
        bound->streams[i].now.window = NO_WINDOW;
    }
}

void peakbound_grow(struct peakbound *bound, size_t from_count, size_t stream_count) {
    struct peakbound larger;
    peakbound_start(&larger, stream_count);
    memcpy(larger.streams, bound->streams, from_count * sizeof *larger.streams);
    memcpy(larger.active, bound->active, bound->active_count * sizeof *larger.active);
    if (bound->current != NULL) {
        bound->current = &larger.streams[bound->current - bound->streams];
    }
    peakbound_free(bound);
    bound->streams = larger.streams;
    bound->active = larger.active;
}

void peakbound_free(struct peakbound *bound) {
    job_release(bound->streams);
    job_release(bound->active);
    bound->streams = NULL;
    bound->active = NULL;
}

static void peakbound_add(struct peakbound_sum *sum, int64_t rise, int64_t fall) {
    int64_t span = wrap_subtract(rise, fall);
    sum->rise = wrap_add(sum->rise, rise);
    sum->fall = wrap_add(sum->fall, fall);
    if (span > sum->best) {
        sum->best = span;
    }
}

static int64_t larger(int64_t left, int64_t right) {
    return left > right ? left : right;
}

static int64_t smaller(int64_t left, int64_t right) {
    return left < right ? left : right;
}

/* `sum` has what the stream did in the window before, if it did something: now it goes on. */
static void peakbound_add_stream(struct peakbound_sum *sum, const struct peakbound_stream *stream) {
    const struct peakbound_run *before = &stream->before;
    const struct peakbound_run *now = &stream->now;
    if (before->window == NO_WINDOW || before->window + 1 != now->window) {
        peakbound_add(sum, now->rise, now->fall);
        return;
    }
    sum->rise = wrap_subtract(sum->rise, before->rise);
    sum->fall = wrap_subtract(sum->fall, before->fall);
    peakbound_add(sum, larger(before->rise, wrap_add(before->change, now->rise)),
                  smaller(before->fall, wrap_add(before->change, now->fall)));
}

static void peakbound_end_window(struct peakbound *bound) {
    struct peakbound_sum alone = {0};
    struct peakbound_sum pair = bound->alone;
    int64_t change = 0;
    int64_t lowest;
    for (size_t i = 0; i < bound->active_count; i++) {
        const struct peakbound_stream *stream = &bound->streams[bound->active[i]];
        peakbound_add(&alone, stream->now.rise, stream->now.fall);
        peakbound_add_stream(&pair, stream);
        change = wrap_add(change, stream->now.change);
    }
    lowest = wrap_add(pair.fall, pair.best);
    bound->highest = larger(bound->highest, wrap_add(bound->live, pair.rise));
    bound->lowest = larger(bound->lowest, wrap_add(bound->live, lowest));
    bound->widest = larger(bound->widest, wrap_subtract(pair.rise, lowest));
    bound->live = bound->now;
    bound->now = wrap_add(bound->now, change);
    bound->alone = alone;
    bound->active_count = 0;
}

static void peakbound_start_window(struct peakbound *bound, uint64_t window) {
    if (bound->window == NO_WINDOW || bound->window + 1 != window) { /* nothing just before it */
        bound->live = bound->now;
        bound->alone = (struct peakbound_sum){0};
    }
    bound->window = window;
}

void peakbound_run(struct peakbound *bound, size_t stream, uint64_t window) {
    struct peakbound_stream *next = &bound->streams[stream];
    if (window != bound->window) {
        if (bound->window != NO_WINDOW) {
            peakbound_end_window(bound);
        }
        peakbound_start_window(bound, window);
    }
    bound->is_shared |= bound->current != NULL && bound->current != next;
    bound->current = next;
    if (next->now.window != window) {
        next->before = next->now;
        next->now = (struct peakbound_run){.window = window};
        bound->active[bound->active_count++] = stream;
    }
}

uint64_t peakbound_error(struct peakbound *bound, uint64_t maximum) {
    int64_t value = (int64_t)maximum;
    if (!bound->is_shared) {
        return 0;
    }
    peakbound_end_window(bound);
    return (uint64_t)larger(
        0, larger(wrap_subtract(bound->highest, value), wrap_subtract(value, bound->lowest)));
}
