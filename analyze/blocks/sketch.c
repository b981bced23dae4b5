/* SPDX-License-Identifier: MIT */
/* sketch.c: see sketch.h. */
#include "analyze/blocks/sketch.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINEAR = 1 << SKETCH_BITS, /* buckets for each doubling */
    BUCKET_BYTES = sizeof(uint64_t) + sizeof(uint16_t),
};

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
static uint32_t sketch_place_of(const struct sketch *sketch, uint32_t index) {
    uint32_t low = 0;
    uint32_t high = sketch->size;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sketch->indices[middle] < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int sketch_insert(struct sketch *sketch, uint32_t place, uint32_t index) {
    if (sketch->size == sketch->capacity) {
        uint32_t capacity = sketch->capacity != 0 ? sketch->capacity * 2 : 2;
        uint64_t *counts = reallocarray(sketch->counts, capacity, BUCKET_BYTES);
        uint16_t *indices;
        if (counts == NULL) {
            return -1;
        }
        indices = (uint16_t *)(counts + capacity);
        memmove(indices, counts + sketch->capacity, sketch->size * sizeof *indices);
        sketch->counts = counts;
        sketch->indices = indices;
        sketch->capacity = capacity;
    }
    memmove(&sketch->counts[place + 1], &sketch->counts[place],
            (sketch->size - place) * sizeof *sketch->counts);
    memmove(&sketch->indices[place + 1], &sketch->indices[place],
            (sketch->size - place) * sizeof *sketch->indices);
    sketch->counts[place] = 0;
    sketch->indices[place] = (uint16_t)index;
    sketch->size++;
    return 0;
}

int sketch_add(struct sketch *sketch, uint64_t value, uint64_t count) {
    uint32_t index = index_of(value);
    uint32_t place = sketch_place_of(sketch, index);
    bool is_there = place < sketch->size && sketch->indices[place] == index;
    if (count == 0) {
        return 0;
    }
    if (!is_there && sketch_insert(sketch, place, index) != 0) {
        return -1;
    }
    sketch->least = sketch->count == 0 || value < sketch->least ? value : sketch->least;
    sketch->most = value > sketch->most ? value : sketch->most;
    sketch->counts[place] += count;
    sketch->count += count;
    return 0;
}

uint64_t sketch_percentile(const struct sketch *sketch, double percent) {
    double wanted = (double)sketch->count * percent / 100;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sketch->size; i++) {
        sum += sketch->counts[i];
        if ((double)sum >= wanted) {
            uint64_t most = sketch_most(sketch->indices[i]);
            return most < sketch->most ? most : sketch->most;
        }
    }
    return sketch->most;
}

void sketch_free(struct sketch *sketch) {
    free(sketch->counts);
    *sketch = (struct sketch){0};
}

size_t sketch_bytes(const struct sketch *sketch) {
    return sketch->capacity * (size_t)BUCKET_BYTES;
}
