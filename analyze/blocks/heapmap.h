/* SPDX-License-Identifier: MIT */
/*
 * heapmap.h: where the blocks that live lie: which pages they touch and how full these are, the
 * holes between them, and which contexts keep nearly empty pages.
 *
 * Called by analyze/report. A block's bytes are those that were asked for; a hole is what lies
 * between the usable ends of two neighbours. Invariants:
 *   sum of pages_by_tenth == pages; page_bytes <= pages * HEAPMAP_PAGE
 *   regions are disjoint, by address; each begins and ends with a page, each block is in one
 */
#ifndef ANALYZE_BLOCKS_HEAPMAP_H
#define ANALYZE_BLOCKS_HEAPMAP_H

#include "analyze/blocks/detail.h"
#include "analyze/replay/smaps.h"

enum {
    HEAPMAP_PAGE = 4096,
    HEAPMAP_NEARLY_EMPTY = HEAPMAP_PAGE / 10, /* live bytes of a page: below */
    HEAPMAP_HOLES = 16,                       /* the largest ones are kept */
    HEAPMAP_HOLE_LEAST = 32,                  /* what is smaller is the allocator's own */
    HEAPMAP_APART = 1 << 20,                  /* without smaps a region ends before such a gap */
};

struct heapmap_region {
    uint64_t start, end;
    uint64_t live_bytes;
    uint64_t blocks;
    const char *name; /* of the mapping; NULL: not known */
};

struct heapmap_hole {
    uint64_t start, end;
};

/* A context with blocks on nearly empty pages. */
struct heapmap_pin {
    uint32_t context;
    uint64_t pages;
    uint64_t bytes; /* of its blocks on them */
};

struct heapmap {
    struct heapmap_region *regions;
    size_t region_count;
    struct heapmap_hole holes[HEAPMAP_HOLES]; /* largest first */
    size_t hole_count;
    uint64_t all_holes; /* how many there are, and their bytes */
    uint64_t all_hole_bytes;
    uint64_t pages;
    uint64_t page_bytes; /* live bytes in them */
    uint64_t pages_by_tenth[10];
    uint64_t nearly_empty;
    struct heapmap_pin *pins; /* most pages first */
    size_t pin_count;
};

/* smaps may have no mappings. */
struct heapmap heapmap_make(const struct detail *detail, const struct smaps *smaps);

/* Adds the live bytes of [start, start + count * step) to cells of `step` bytes. */
void heapmap_fill(const struct detail *detail, uint64_t start, uint64_t step, uint64_t *cells,
                  size_t count);

#endif
