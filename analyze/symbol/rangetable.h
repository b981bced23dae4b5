/* SPDX-License-Identifier: MIT */
/*
 * rangetable.h: which address ranges contain this address?
 *
 * Used inside analyze/symbol for compilation units, functions and symbols. Filled once, sealed,
 * then only read: a sealed table may be read by several threads.
 */
#ifndef ANALYZE_SYMBOL_RANGETABLE_H
#define ANALYZE_SYMBOL_RANGETABLE_H

#include <stddef.h>
#include <stdint.h>

/* [low, high). Sealed: sorted by low, then wider first, then higher rank; reach is the greatest
 * high of this and every earlier range, so a walk backwards knows when to stop. */
struct range {
    uint64_t low;
    uint64_t high;
    uint64_t reach;
    uint64_t value;
    uint64_t rank; /* of two equal ranges the lower rank is found first */
};

/* All zero is empty and ready. */
struct rangetable {
    struct range *ranges;
    size_t count;
    size_t room;
};

/* Empty ranges are ignored. 0, or -1: out of memory. */
int rangetable_add(struct rangetable *table, uint64_t low, uint64_t high, uint64_t value,
                   uint64_t rank);
void rangetable_seal(struct rangetable *table);
/* The innermost range that contains the address, NULL: none; given a range it returned, the next
 * wider one. The table must be sealed. */
const struct range *rangetable_find(const struct rangetable *table, uint64_t address,
                                    const struct range *last);
void rangetable_free(struct rangetable *table);

#endif
