/* SPDX-License-Identifier: MIT */
/*
 * allocations.h: a pass over the blocks that the table of allocations asks for: which of them, and
 * whether their ends matter.
 *
 * Called by analyze/query/allocationstable.
 */
#ifndef ANALYZE_QUERY_ALLOCATIONS_H
#define ANALYZE_QUERY_ALLOCATIONS_H

#include "analyze/query/rowqueue.h"
#include "analyze/query/vtable.h"

/* Columns that constraints are pushed down of. */
enum allocations_bound {
    ALLOCATIONS_ID,
    ALLOCATIONS_THREAD,
    ALLOCATIONS_ADDRESS,
    ALLOCATIONS_SIZE,
    ALLOCATIONS_CONTEXT,
    ALLOCATIONS_BORN,
    ALLOCATIONS_FREED,
    ALLOCATIONS_LIFETIME,
    ALLOCATIONS_FREED_BY,
    ALLOCATIONS_BOUNDS
};

struct allocations_question {
    struct selection_range bounds[ALLOCATIONS_BOUNDS];
    bool only_births; /* no column of a block's end is needed: rows come by id */
};

/* A pass under way. */
struct allocations_pass;

/* NULL: no memory or no thread. */
struct allocations_pass *allocations_start(struct query *query,
                                           const struct allocations_question *question);
/* As rowqueue_next(): 1, 0 or -1; the row's scope lasts until close. -2: the pass failed, error
 * says why. */
int allocations_next(struct allocations_pass *pass, const struct rows_allocation **row,
                     struct error *error);
void allocations_close(struct allocations_pass *pass); /* NULL is allowed */

#endif
