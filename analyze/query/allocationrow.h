/* SPDX-License-Identifier: MIT */
/*
 * allocationrow.h: the columns of the table of allocations, and what stands in them.
 *
 * Called by analyze/query/allocationstable.
 */
#ifndef ANALYZE_QUERY_ALLOCATIONROW_H
#define ANALYZE_QUERY_ALLOCATIONROW_H

#include "analyze/query/allocations.h"

enum allocation_column {
    ALLOCATION_ID,
    ALLOCATION_THREAD,
    ALLOCATION_NUMBER,
    ALLOCATION_ADDRESS,
    ALLOCATION_SIZE,
    ALLOCATION_SLACK,
    ALLOCATION_USABLE,
    ALLOCATION_ALIGNMENT,
    ALLOCATION_ZEROED,
    ALLOCATION_MAPPED,
    ALLOCATION_ARENA,
    ALLOCATION_CONTEXT,
    ALLOCATION_CLASS,
    ALLOCATION_POOL,
    ALLOCATION_BORN,
    ALLOCATION_FREED,
    ALLOCATION_LIFETIME,
    ALLOCATION_FREED_BY,
    ALLOCATION_FREED_CONTEXT,
    ALLOCATION_TEMPORARY,
    ALLOCATION_REALLOCATED,
    ALLOCATION_REALLOC_OF,
    ALLOCATION_CHAIN,
    ALLOCATION_CHAIN_LENGTH,
    ALLOCATION_CHAIN_BORN,
    ALLOCATION_FIRST_SIZE,
    ALLOCATION_INHERITED,
    ALLOCATION_SCOPE,
    ALLOCATION_WEIGHT,
    ALLOCATION_COUNT,
    ALLOCATION_COLUMNS
};

extern const struct vtable_column allocation_columns[ALLOCATION_COLUMNS];

void allocation_put(const struct query *query, const struct allocations_row *row,
                    enum allocation_column column, sqlite3_context *out);

#endif
