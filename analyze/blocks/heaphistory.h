/* SPDX-License-Identifier: MIT */
/*
 * heaphistory.h: how full the heap's addresses were over a recording: at some moments, coarsely,
 * by one pass (holes.h); so that an address map can be scrubbed through time without a pass for
 * each moment.
 *
 * Called by web/server. A value that does not change; whoever made it frees it. All heap blocks
 * count, whatever is selected, with what they could use beyond what was asked for. Memory is
 * bounded: where cells would be too many they become larger, for all moments.
 */
#ifndef ANALYZE_BLOCKS_HEAPHISTORY_H
#define ANALYZE_BLOCKS_HEAPHISTORY_H

#include "analyze/blocks/holes.h"

enum { HEAPHISTORY_MOMENTS = 256, HEAPHISTORY_CELLS = 4 << 20, HEAPHISTORY_STEP = 1 << 16 };

/* A stretch of addresses of which something is in use. */
struct heaphistory_cell {
    uint32_t number; /* address / step */
    uint32_t level;  /* 1 to 255: how full */
};

/* The heap before anything happened at time_ns or behind it. */
struct heaphistory_moment {
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t unused_bytes; /* as holes.h has it */
    uint64_t pages;        /* that some block touches */
    size_t first;          /* of the cells, by address */
    size_t count;
};

struct heaphistory {
    struct heaphistory_moment moments[HEAPHISTORY_MOMENTS]; /* times grow */
    size_t count;
    uint64_t step; /* bytes of a cell: a power of two */
    struct heaphistory_cell *cells;
    size_t cell_count, cell_room;
    struct holes most; /* holes_find() */
    struct job_memory *memory;
};

/* Moments are spread evenly over [from_ns, to_ns]. NULL: out of memory, or cancelled (error says
 * which). */
struct heaphistory *heaphistory_make(const struct model *whole, struct timeorder_parts parts,
                                     uint64_t from_ns, uint64_t to_ns,
                                     const struct replay_options *options, struct error *error);
void heaphistory_free(struct heaphistory *history); /* NULL is allowed */

/* The last moment no later than that; the first one where all are later. */
const struct heaphistory_moment *heaphistory_at(const struct heaphistory *history,
                                                uint64_t time_ns);

#endif
