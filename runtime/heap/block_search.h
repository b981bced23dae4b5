/* SPDX-License-Identifier: MIT */
/*
 * block_search.h: which block of a table contains an address, for addresses that go up: a whole
 * table is gone through once, however many are asked for. And the blocks of a table in that order.
 *
 * Called by follow/poolroom.c. Others may change the table meanwhile.
 */
#ifndef RUNTIME_HEAP_BLOCK_SEARCH_H
#define RUNTIME_HEAP_BLOCK_SEARCH_H

#include "runtime/heap/shadow_heap.h"

enum { BLOCK_SEARCH_DEPTH = 8 /* blocks in each other; what lies deeper is in the last of them */ };

/* Of the blocks of 1 KiB and more. Invariant: each begins within the one before it. */
struct block_search {
    const struct shadow_heap *heap;
    uintptr_t next; /* what starts below was looked at */
    uint32_t tick;
    int depth;
    struct written_pages touched;
    struct heap_block block[BLOCK_SEARCH_DEPTH];
};

void block_search_begin(struct block_search *it, const struct shadow_heap *heap, uint32_t tick);
/* How many blocks that start below `limit` contain the address: the innermost is block[that - 1].
 * `limit` is at most address + 1. */
int block_search_find(struct block_search *it, uintptr_t address, uintptr_t limit);

/* The same of smaller blocks: the one that starts last. 1, or 0. */
int block_search_find_small(struct block_search *it, uintptr_t address, uintptr_t limit,
                            struct heap_block *block);

/* As heap_visit(), by address; births of large blocks are whole. `touched` is the caller's, all
 * zero: it is large. */
void block_search_visit(const struct shadow_heap *heap, uint32_t tick,
                        struct written_pages *touched,
                        void (*visit)(void *argument, const struct heap_block *block),
                        void *argument);

#endif
