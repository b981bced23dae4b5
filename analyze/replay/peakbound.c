/* SPDX-License-Identifier: MIT */
/* peakbound.c: the bound of a replayed maximum's error. See peakbound.h. */
#include "analyze/replay/peakbound.h"

#include <stdlib.h>
#include <string.h>

#define NO_WINDOW UINT64_MAX

int peakbound_start(struct peakbound *bound, size_t stream_count) {
    *bound = (struct peakbound){.window = NO_WINDOW};
    bound->streams = calloc(stream_count + 1, sizeof *bound->streams);
    bound->active = calloc(stream_count + 1, sizeof *bound->active);
    if (bound->streams == NULL || bound->active == NULL) {
        peakbound_free(bound);
        return -1;
    }
    for (size_t i = 0; i < stream_count; i++) {
        bound->streams[i].now.window = NO_WINDOW;
    }
    return 0;
}

int peakbound_grow(struct peakbound *bound, size_t from_count, size_t stream_count) {
    struct peakbound larger;
    if (peakbound_start(&larger, stream_count) != 0) {
        return -1;
    }
    memcpy(larger.streams, bound->streams, from_count * sizeof *larger.streams);
    memcpy(larger.active, bound->active, bound->active_count * sizeof *larger.active);
    if (bound->current != NULL) {
        bound->current = &larger.streams[bound->current - bound->streams];
    }
    free(bound->streams);
    free(bound->active);
    bound->streams = larger.streams;
    bound->active = larger.active;
    return 0;
}

void peakbound_free(struct peakbound *bound) {
    free(bound->streams);
    free(bound->active);
    bound->streams = NULL;
    bound->active = NULL;
}

static void add(struct peakbound_sum *sum, int64_t rise, int64_t fall) {
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
static void add_stream(struct peakbound_sum *sum, const struct peakbound_stream *stream) {
    const struct peakbound_run *before = &stream->before;
    const struct peakbound_run *now = &stream->now;
    if (before->window == NO_WINDOW || before->window + 1 != now->window) {
        add(sum, now->rise, now->fall);
        return;
    }
    sum->rise = wrap_subtract(sum->rise, before->rise);
    sum->fall = wrap_subtract(sum->fall, before->fall);
    add(sum, larger(before->rise, wrap_add(before->change, now->rise)),
        smaller(before->fall, wrap_add(before->change, now->fall)));
}

static void end_window(struct peakbound *bound) {
    struct peakbound_sum alone = {0};
    struct peakbound_sum pair = bound->alone;
    int64_t change = 0;
    int64_t lowest;
    for (size_t i = 0; i < bound->active_count; i++) {
        const struct peakbound_stream *stream = &bound->streams[bound->active[i]];
        add(&alone, stream->now.rise, stream->now.fall);
        add_stream(&pair, stream);
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

static void start_window(struct peakbound *bound, uint64_t window) {
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
            end_window(bound);
        }
        start_window(bound, window);
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
    end_window(bound);
    return (uint64_t)larger(
        0, larger(wrap_subtract(bound->highest, value), wrap_subtract(value, bound->lowest)));
}
