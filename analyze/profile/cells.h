/* SPDX-License-Identifier: MIT */
/*
 * cells.h: where a profile keeps the cells of its contexts: what each column (a thread, or several)
 * counted of each context. And the ids of its nodes.
 *
 * Called by analyze/profile. Belongs to a job; valid until the profile is refreshed or closed.
 *
 *     for (struct cells_context at = {0}; cells_next(&cells, node_count, &at);) {
 *         cells_sum(&cells, &at, epoch, &sums[at.id]);
 *     }
 */
#ifndef ANALYZE_PROFILE_CELLS_H
#define ANALYZE_PROFILE_CELLS_H

#include "analyze/model/model.h"

/* One context's costs, added up. Signed sums wrap as unsigned: one column may free what another
 * allocated, so only the whole is positive. */
struct sum {
    uint64_t alloc_bytes;
    uint64_t alloc_count;
    uint64_t free_bytes;
    uint64_t free_count;
    uint64_t temporary;
    uint64_t peak_bytes;
    uint64_t base_bytes; /* held where the view began */
    uint64_t base_count;
    double total_variance; /* of estimates; at the end the standard errors */
    double live_variance;
    double count_variance; /* of profiles */
    uint32_t lifetimes;    /* number of its buckets, from 1; 0: none yet */
    uint32_t epoch;        /* sums.c's */
};

/* Cells of 64 contexts in one column. */
struct cells_group {
    const struct profile_segment *segment;
    uint64_t index; /* of the first context: / MEMTRACE_GROUP_ITEMS */
    uint32_t place; /* of its cell in the segment */
};

struct cells {
    const struct profile *profile;
    struct cells_group *groups; /* by index: those of the same contexts in all columns together */
    size_t count;
    const struct profile_segment **lifetimes; /* by index; NULL: there is none */
    size_t lifetime_leaves;
    uint32_t only; /* a column + 1: the others are left out; 0: all count */
};

void cells_gather(struct cells *cells, const struct profile *profile);
/* Frees them early. */
void cells_release(struct cells *cells);

/* A context that has cells: in `columns` groups from `first` on, each at `place`. */
struct cells_context {
    uint32_t id;
    uint32_t place;
    size_t first, columns;
};

/* The next one of an id below node_count; of all zero, the first one. false: there is none. */
bool cells_next(const struct cells *cells, size_t node_count, struct cells_context *context);

/* Adds up its columns. Of a program that runs meanwhile the frees are read first, then what it
 * allocated and held at the maximum, which was that epoch (struct memtrace_header): so a free is
 * never seen without its allocation. */
void cells_sum(const struct cells *cells, const struct cells_context *context, uint32_t epoch,
               struct sum *sum);
/* The last of that alone. */
void cells_sum_peak(const struct cells *cells, const struct cells_context *context, uint32_t epoch,
                    struct sum *sum);
/* Adds how many of its frees are in each bucket; false: it is not known of any. */
bool cells_sum_lifetimes(const struct cells *cells, const struct cells_context *context,
                         uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]);
/* Which columns allocated in it: a bit each, all from `others` on the last. */
uint64_t cells_allocating(const struct cells *cells, const struct cells_context *context,
                          uint32_t others);

/* One more than the highest id that a node or a cell may have. */
size_t cells_count_nodes(const struct profile *profile);
/* The id of a node of a segment of the tree; false: it is none. */
bool cells_node_id(const struct profile_segment *segment, uint32_t place, uint32_t *id);
/* Reads the nodes of such a segment, the youngest first, into those below count. The first whose
 * parent cannot be, if there is one, becomes *impossible; they have none then. Whether each place
 * has a node by now, so that nothing in it changes any more. */
bool cells_load_nodes(const struct profile *profile, const struct profile_segment *segment,
                      struct model_node *nodes, size_t count, uint32_t *impossible);

#endif
