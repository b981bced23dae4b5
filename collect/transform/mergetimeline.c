/* SPDX-License-Identifier: MIT */
/* mergetimeline.c: see mergetimeline.h. */
#include "collect/transform/mergetimeline.h"

#include <stdlib.h>

void mergetimeline_free(struct mergetimeline *timeline) {
    free(timeline->changes);
    *timeline = (struct mergetimeline){0};
}

static struct memtrace_point difference(const struct memtrace_point *now,
                                        const struct memtrace_point *before) {
    return (struct memtrace_point){.time_ns = now->time_ns,
                                   .live_bytes = now->live_bytes - before->live_bytes,
                                   .resident_bytes = now->resident_bytes - before->resident_bytes,
                                   .alloc_count = now->alloc_count - before->alloc_count,
                                   .alloc_bytes = now->alloc_bytes - before->alloc_bytes};
}

int mergetimeline_add(struct mergetimeline *timeline, const struct model *model,
                      uint64_t shift_ns) {
    struct memtrace_point before = {0};
    size_t wanted = timeline->count + model->timeline_count + 1;
    if (model->timeline_count == 0) {
        return 0;
    }
    if (wanted > timeline->capacity) {
        struct memtrace_point *grown = reallocarray(timeline->changes, wanted * 2, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        timeline->changes = grown;
        timeline->capacity = wanted * 2;
    }
    for (size_t i = 0; i < model->timeline_count; i++) {
        struct memtrace_point point = model->timeline[i];
        point.time_ns += shift_ns;
        timeline->changes[timeline->count++] = difference(&point, &before);
        before = point;
    }
    timeline->changes[timeline->count++] = (struct memtrace_point){
        .time_ns = before.time_ns + 1, .resident_bytes = -before.resident_bytes};
    return 0;
}

static int compare(const void *left, const void *right) {
    const struct memtrace_point *a = left;
    const struct memtrace_point *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Changes become sums, one for each moment. */
static void sum_up(struct mergetimeline *timeline) {
    struct memtrace_point sum = {0};
    size_t count = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct memtrace_point *change = &timeline->changes[i];
        count += i != 0 && change->time_ns != sum.time_ns;
        sum.time_ns = change->time_ns;
        sum.live_bytes += change->live_bytes;
        sum.resident_bytes += change->resident_bytes;
        sum.alloc_count += change->alloc_count;
        sum.alloc_bytes += change->alloc_bytes;
        timeline->changes[count] = sum;
    }
    timeline->count = count + 1;
}

/* Of the points [from, to) that with the most live bytes, so that peaks stay. */
static const struct memtrace_point *highest(const struct mergetimeline *timeline, size_t from,
                                            size_t to) {
    const struct memtrace_point *best = &timeline->changes[from];
    for (size_t i = from; i < to && i < timeline->count; i++) {
        best = timeline->changes[i].live_bytes > best->live_bytes ? &timeline->changes[i] : best;
    }
    return best;
}

size_t mergetimeline_sum(struct mergetimeline *timeline, struct memtrace_point *points,
                         size_t most) {
    size_t stride;
    size_t count = 0;
    if (timeline->count == 0) {
        return 0;
    }
    qsort(timeline->changes, timeline->count, sizeof *timeline->changes, compare);
    sum_up(timeline);
    stride = (timeline->count + most - 1) / most;
    for (size_t i = 0; i < timeline->count; i += stride) {
        points[count++] = *highest(timeline, i, i + stride);
    }
    return count;
}
