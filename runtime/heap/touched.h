/* SPDX-License-Identifier: MIT */
/*
 * touched.h: which pages of a leaf of the shadow heap were ever written. Leaves are large and
 * sparse, and who only looks at them would have the kernel map a page for each that it looks at.
 *
 * Called by enclosing.c and shadow_heap.c.
 */
#ifndef RUNTIME_HEAP_TOUCHED_H
#define RUNTIME_HEAP_TOUCHED_H

#include "runtime/heap/shadow_heap.h"

enum {
    /* records and births of the finest granule, and large blocks */
    TOUCHED_BYTES =
        (SPAN_BYTES >> MEMTRACE_POOL_SHIFT) * (int)(sizeof(uint64_t) + sizeof(uint16_t)) +
        (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * (int)sizeof(struct memtrace_big_block),
    TOUCHED_PAGES = TOUCHED_BYTES / MEMTRACE_PAGE_SIZE + 1
};

/* Of the leaf that was asked for last. All zero: of none yet. */
struct touched {
    const uint8_t *leaf;
    unsigned char page[TOUCHED_PAGES];
};

/* Whether what lies there in the leaf may be anything but zero. */
int touched_at(struct touched *touched, const struct shadow_heap *heap, const uint8_t *leaf,
               const void *place);

/* The same of pages of the kernel's from a page's start on, one byte for each: 1: it may be
 * anything but zero. Others may write meanwhile: what they did before the call is seen. `pagemap`:
 * from touched_open(), which may be negative: then all are 1. */
void touched_look(long pagemap, const uint8_t *start, size_t pages, unsigned char *page);
long touched_open(void);
void touched_close(long pagemap);

#endif
