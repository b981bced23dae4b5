/* SPDX-License-Identifier: MIT */
/* sketch.c: see sketch.h. */
#include "analyze/blocks/sketch.h"

#include <stdlib.h>
#include <string.h>

enum { LINEAR = 1 << SKETCH_BITS }; /* buckets for each doubling */

/* A bucket's index: the position of the highest bit, then the SKETCH_BITS that follow it. */
static uint32_t index_of(uint64_t value) {
    unsigned shift;
    if (value < 2 * LINEAR) {
        return (uint32_t)value;
    }
    shift = 63 - (unsigned)__builtin_clzll(value) - SKETCH_BITS;
    return shift * LINEAR + (uint32_t)(value >> shift);
}

uint64_t sketch_least(uint32_t index) {
    uint32_t shift = index < 2 * LINEAR ? 0 : index / LINEAR - 1;
    return ((uint64_t)index - (uint64_t)shift * LINEAR) << shift;
}

uint64_t sketch_most(uint32_t index) {
    uint32_t shift = index < 2 * LINEAR ? 0 : index / LINEAR - 1;
    return sketch_least(index) + ((UINT64_C(1) << shift) - 1);
}

/* The first bucket that is not below. */
static uint32_t place_of(const struct sketch *sketch, uint32_t index) {
    uint32_t low = 0;
    uint32_t high = sketch->size;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sketch->buckets[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int insert(struct sketch *sketch, uint32_t place, uint32_t index) {
    if (sketch->size == sketch->capacity) {
        uint32_t capacity = sketch->capacity != 0 ? sketch->capacity * 2 : 2;
        struct sketch_bucket *grown = reallocarray(sketch->buckets, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        sketch->buckets = grown;
        sketch->capacity = capacity;
    }
    memmove(&sketch->buckets[place + 1], &sketch->buckets[place],
            (sketch->size - place) * sizeof *sketch->buckets);
    sketch->buckets[place] = (struct sketch_bucket){.index = index};
    sketch->size++;
    return 0;
}

int sketch_add(struct sketch *sketch, uint64_t value, uint64_t count) {
    uint32_t index = index_of(value);
    uint32_t place = place_of(sketch, index);
    bool is_there = place < sketch->size && sketch->buckets[place].index == index;
    if (count == 0) {
        return 0;
    }
    if (!is_there && insert(sketch, place, index) != 0) {
        return -1;
    }
    sketch->least = sketch->count == 0 || value < sketch->least ? value : sketch->least;
    sketch->most = value > sketch->most ? value : sketch->most;
    sketch->buckets[place].count += count;
    sketch->count += count;
    return 0;
}

uint64_t sketch_percentile(const struct sketch *sketch, double percent) {
    double wanted = (double)sketch->count * percent / 100;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sketch->size; i++) {
        sum += sketch->buckets[i].count;
        if ((double)sum >= wanted) {
            uint64_t most = sketch_most(sketch->buckets[i].index);
            return most < sketch->most ? most : sketch->most;
        }
    }
    return sketch->most;
}

void sketch_free(struct sketch *sketch) {
    free(sketch->buckets);
    *sketch = (struct sketch){0};
}
