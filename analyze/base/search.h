/* SPDX-License-Identifier: MIT */
/* search.h: finds the place of a number among numbers that do not decrease: members of the structs
 * of an array, `size` bytes each, at `offset` in them. */
#ifndef ANALYZE_BASE_SEARCH_H
#define ANALYZE_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* How many are below the number: so the place of the first one that is not. */
static inline size_t search_below(const void *items, size_t count, size_t size, size_t offset,
                                  uint64_t number) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *item = (const char *)items + middle * size;
        if (*(const uint64_t *)(const void *)(item + offset) < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* How many are not above it. */
static inline size_t search_to(const void *items, size_t count, size_t size, size_t offset,
                               uint64_t number) {
    return number == UINT64_MAX ? count : search_below(items, count, size, offset, number + 1);
}

#endif
