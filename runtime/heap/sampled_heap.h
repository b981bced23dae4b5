/* SPDX-License-Identifier: MIT */
/*
 * sampled_heap.h: the live blocks that sampling has picked, and a filter that tells nearly all
 * other addresses apart at the cost of one load.
 *
 * Used by entry/sampled_mode and by who looks blocks up. Any thread, handler or forked child may
 * call anything here at any time: a block belongs to who owns its address, by malloc's own
 * contract, so its place has one writer; a place is taken by one compare-and-swap, and nothing ever
 * moves. What a killed handler or another thread of before a fork left half done costs a place.
 *
 * Invariants:
 *   a block lies in one of the 8 places of its group on some level (format.h: struct
 *   memtrace_sampled_heap), the first that had room
 *   the filter's count of each 256 bytes of addresses is at least that of the blocks that start
 *   there; once it has reached its end it stays
 */
#ifndef RUNTIME_HEAP_SAMPLED_MODE_HEAP_H
#define RUNTIME_HEAP_SAMPLED_MODE_HEAP_H

#include "memtrace/sampled.h"
#include "runtime/base/compiler.h"

enum {
    SAMPLED_FILTER_SHIFT = 8,
    SAMPLED_FILTER_ITEMS = 1 << 18, /* 256 KiB of which a program touches what its heap covers */
};

extern uint8_t sampled_heap_filter[SAMPLED_FILTER_ITEMS];
extern struct memtrace_sampled_heap sampled_heap; /* of the process: the header has its address */

INLINE uint8_t *sampled_heap_filter_at(uintptr_t address) {
    return &sampled_heap_filter[(address >> SAMPLED_FILTER_SHIFT) & (SAMPLED_FILTER_ITEMS - 1)];
}

/* 0: no sampled block starts at this address. */
INLINE int sampled_heap_may_hold(uintptr_t address) {
    return LOAD_RELAXED(sampled_heap_filter_at(address)) != 0;
}

/* From now on these addresses are said to hold some: for what is to be looked at in another way
 * when it is freed. */
void sampled_heap_expect(const void *start, size_t size);

/* There is none any more: the memory of all was given up. */
void sampled_heap_forget(void);
/* Notes a block that was given out just now. 0, or -1: no memory. */
int sampled_heap_insert(uintptr_t address, const struct memtrace_sampled_block *block);
/* Takes it out, before the allocator may give its address to others. 1, or 0: it is not there. */
int sampled_heap_remove(uintptr_t address, struct memtrace_sampled_block *block);
/* The block that contains `address`. Looks at all there are. 1, or 0. */
int sampled_heap_find(uintptr_t address, uintptr_t *start, struct memtrace_sampled_block *block);
/* Calls visit() for every block. Others may come and go meanwhile. */
void sampled_heap_visit(void (*visit)(void *argument, uintptr_t start,
                                      const struct memtrace_sampled_block *block),
                        void *argument);

#endif
