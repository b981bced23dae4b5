/* SPDX-License-Identifier: MIT */
/*
 * topn.h: the call paths that hold the most live memory, chosen and spelled.
 *
 * Called by collect/periodic. Any thread.
 */
#ifndef COLLECT_TOPN_H
#define COLLECT_TOPN_H

#include "analyze/model/model.h"
#include "analyze/symbol/symbol.h"

#include <stdio.h>

struct topn_row {
    const struct model_context *context; /* of the present model */
    uint64_t interval_bytes;             /* allocated since the previous model */
    uint64_t interval_allocations;
    uint64_t interval_freed_bytes;
    uint64_t interval_frees;
};

/* The `limit` (0: all) paths with the most live bytes, the largest first; of equals the one with
 * more allocated bytes, then the older. Paths without live bytes are left out. `previous` may be
 * NULL: everything happened in this interval. *live: how many paths there were to choose from. The
 * caller frees *rows. 0 or -1 (out of memory). */
int topn_choose(const struct model *now, const struct model *previous, size_t limit,
                struct topn_row **rows, size_t *count, size_t *live);

/* Prints the rows in reverse order, the largest last, each with its path, innermost frame first.
 * symbolizer may be NULL: module+offset only. */
void topn_print(FILE *out, const struct model *model, const struct topn_row *rows, size_t count,
                struct symbolizer *symbolizer);

#endif
