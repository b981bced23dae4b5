/* SPDX-License-Identifier: MIT */
/*
 * mergetimeline.h: the timelines of several processes added up.
 *
 * Called by collect/mergeprofiles. One thread.
 */
#ifndef COLLECT_TRANSFORM_MERGETIMELINE_H
#define COLLECT_TRANSFORM_MERGETIMELINE_H

#include "analyze/model/model.h"

struct mergetimeline {
    struct memtrace_point *changes; /* by how much the sums grow; modulo 2^64: or fall */
    size_t count;
    size_t capacity;
};

/* All zero is empty and ready. */
void mergetimeline_free(struct mergetimeline *timeline);

/* Adds a process's. What it held at its end stays; its resident set goes. 0, or -1: no memory. */
int mergetimeline_add(struct mergetimeline *timeline, const struct model *model, uint64_t shift_ns);

/* The sums at `most` moments at most, the last one included. Returns their number. Only once. */
size_t mergetimeline_sum(struct mergetimeline *timeline, struct memtrace_point *points,
                         size_t most);

#endif
