/* SPDX-License-Identifier: MIT */
/*
 * written_pages.h: which pages of a leaf of the shadow heap were ever written. Leaves are large and
 * sparse, and who only looks at them would have the kernel map a page for each that it looks at.
 *
 * Called by block_search.c and shadow_heap.c.
 */
#ifndef RUNTIME_HEAP_WRITTEN_PAGES_H
#define RUNTIME_HEAP_WRITTEN_PAGES_H

#include "runtime/heap/shadow_heap.h"

enum {
    /* records and births of the finest granule, and large blocks */
    WRITTEN_PAGES_BYTES =
        (SPAN_BYTES >> MEMTRACE_POOL_SHIFT) * (int)(sizeof(uint64_t) + sizeof(uint16_t)) +
        (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * (int)sizeof(struct memtrace_big_block),
    WRITTEN_PAGES_MOST = WRITTEN_PAGES_BYTES / MEMTRACE_PAGE_SIZE + 1
};

/* Of the leaf that was asked for last. All zero: of none yet. */
struct written_pages {
    const uint8_t *leaf;
    unsigned char page[WRITTEN_PAGES_MOST];
};

/* Whether what lies there in the leaf may be anything but zero. */
int written_pages_at(struct written_pages *touched, const struct shadow_heap *heap,
                     const uint8_t *leaf, const void *place);

/* The same of pages of the kernel's from a page's start on, one byte for each: 1: it may be
 * anything but zero. Others may write meanwhile: what they did before the call is seen. `pagemap`:
 * from written_pages_open(), which may be negative: then all are 1. */
void written_pages_look(long pagemap, const uint8_t *start, size_t pages, unsigned char *page);
long written_pages_open(void);
void written_pages_close(long pagemap);

#endif
