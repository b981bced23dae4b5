/* SPDX-License-Identifier: MIT */
/*
 * part.h: one slice of a recording, read once more: what happened in it within a window. Frees of
 * blocks that began before the slice are paired by looking for these blocks, by their numbers, in
 * the headers of the recording's blocks.
 *
 * Called by analyze/model/view. Belongs to one thread.
 */
#ifndef ANALYZE_WINDOW_PART_H
#define ANALYZE_WINDOW_PART_H

#include "analyze/model/model.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/index.h"

/* A block that began before the slice and ends in it. */
struct part_block {
    struct event_block name;
    struct pairing_block block;
    uint64_t born_ns;
    bool is_known; /* found */
};

struct part {
    const struct model *whole;
    struct timeorder_parts parts;
    const struct index_entry *entry;
    uint64_t stop_ns;          /* where the next slice begins */
    struct part_block *before; /* by thread and number */
    size_t before_count;
    size_t before_capacity;
};

/* Entry `at` of the model's index. 0, or -1: out of memory, or a damaged index. part_close() in any
 * case. */
int part_open(struct part *part, const struct model *whole, struct timeorder_parts parts,
              size_t at);
void part_close(struct part *part);

/* What of it happened in [from, to). 0 or -1. */
int part_sum(const struct part *part, uint64_t from_ns, uint64_t to_ns, struct slice *slice);

#endif
