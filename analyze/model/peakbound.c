/* SPDX-License-Identifier: MIT */
/* peakbound.c: the bound of a replayed maximum's error. See peakbound.h. */
#include "analyze/model/peakbound.h"

#include <stdlib.h>

#define NO_WINDOW UINT64_MAX

int peakbound_start(struct peakbound *bound, size_t stream_count) {
    *bound = (struct peakbound){.stream_count = stream_count, .window = NO_WINDOW};
    bound->last = calloc(stream_count + 1, sizeof *bound->last);
    for (size_t i = 0; bound->last != NULL && i < stream_count; i++) {
        bound->last[i].window = NO_WINDOW;
    }
    return bound->last != NULL ? 0 : -1;
}

void peakbound_free(struct peakbound *bound) {
    free(bound->last);
    bound->last = NULL;
}

static void add(struct peakbound_pair *pair, int64_t rise, int64_t fall) {
    pair->rise += rise;
    pair->fall += fall;
    if (rise - fall > pair->best) {
        pair->best = rise - fall;
    }
}

static int64_t larger(int64_t left, int64_t right) {
    return left > right ? left : right;
}

static int64_t smaller(int64_t left, int64_t right) {
    return left < right ? left : right;
}

/* The run is over: the pair has what the stream did in the window before; now it goes on. */
static void end_run(struct peakbound *bound) {
    struct peakbound_run *last = &bound->last[bound->stream];
    struct peakbound_run run = bound->run;
    if (bound->window == NO_WINDOW) {
        return;
    }
    bound->change += run.change;
    add(&bound->alone, run.rise, run.fall);
    if (last->window != NO_WINDOW && last->window + 1 == run.window) {
        int64_t rise = larger(last->rise, last->change + run.rise);
        int64_t fall = smaller(last->fall, last->change + run.fall);
        bound->pair.rise -= last->rise;
        bound->pair.fall -= last->fall;
        add(&bound->pair, rise, fall);
    } else {
        add(&bound->pair, run.rise, run.fall);
    }
    *last = run;
}

static void end_window(struct peakbound *bound) {
    const struct peakbound_pair *pair = &bound->pair;
    bound->highest = larger(bound->highest, bound->live + pair->rise);
    bound->lowest = larger(bound->lowest, bound->live + pair->fall + pair->best);
}

static void start_window(struct peakbound *bound, uint64_t window) {
    int follows = bound->window != NO_WINDOW && bound->window + 1 == window;
    int64_t now = bound->now + bound->change;
    bound->before = follows ? bound->alone : (struct peakbound_pair){0};
    bound->live = follows ? bound->now : now;
    bound->now = now;
    bound->change = 0;
    bound->pair = bound->before;
    bound->alone = (struct peakbound_pair){0};
    bound->window = window;
}

void peakbound_run(struct peakbound *bound, size_t stream, uint64_t window) {
    end_run(bound);
    if (window != bound->window) {
        if (bound->window != NO_WINDOW) {
            end_window(bound);
        }
        start_window(bound, window);
    }
    if (bound->streams_seen == 0 || (bound->streams_seen == 1 && stream != bound->stream)) {
        bound->streams_seen++;
    }
    bound->stream = stream;
    bound->run = (struct peakbound_run){.window = window};
}

uint64_t peakbound_error(struct peakbound *bound, uint64_t maximum) {
    int64_t value = (int64_t)maximum;
    end_run(bound);
    if (bound->window == NO_WINDOW) {
        return 0;
    }
    end_window(bound);
    return bound->streams_seen < 2
               ? 0
               : (uint64_t)larger(0, larger(bound->highest - value, value - bound->lowest));
}
