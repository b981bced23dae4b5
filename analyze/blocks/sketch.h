/* SPDX-License-Identifier: MIT */
/*
 * sketch.h: how many values of what magnitude: enough to tell percentiles of millions of values
 * from a few numbers. A bucket holds the values whose first SKETCH_BITS + 1 bits are the same, so
 * what a bucket tells of a value is right to a 1 / 2^SKETCH_BITS of it; values below
 * 2^(SKETCH_BITS + 1) are exact.
 *
 * Called by analyze/blocks/detail and analyze/report. A value; start from {0}.
 */
#ifndef ANALYZE_BLOCKS_SKETCH_H
#define ANALYZE_BLOCKS_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SKETCH_BITS = 4 };

struct sketch {
    uint64_t *counts;  /* of buckets that are not empty, by their indices */
    uint16_t *indices; /* growing; in the memory behind the counts: a search stays in few lines */
    uint32_t size;
    uint32_t capacity;
    uint64_t count; /* of all buckets */
    uint64_t least; /* of all values, exact */
    uint64_t most;
};

/* 0, or -1: out of memory. */
int sketch_add(struct sketch *sketch, uint64_t value, uint64_t count);
void sketch_free(struct sketch *sketch);
/* It is added to soon. */
static inline void sketch_prefetch(const struct sketch *sketch) {
    enum { LINE = 64, LINES = 4 };
    const char *at = (const char *)sketch->indices;
    for (size_t line = 0; line < LINES && line * LINE < sketch->size * sizeof(uint16_t); line++) {
        __builtin_prefetch(at + line * LINE);
    }
}
size_t sketch_bytes(const struct sketch *sketch); /* of memory */

/* The least value that at least `percent` of all values do not exceed, or up to a 1 / 2^SKETCH_BITS
 * more. 0 if there are none. */
uint64_t sketch_percentile(const struct sketch *sketch, double percent);

/* The values of a bucket: [least, most] */
uint64_t sketch_least(uint32_t index);
uint64_t sketch_most(uint32_t index);

#endif
