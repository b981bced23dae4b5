/* SPDX-License-Identifier: MIT */
/* array.c: see array.h. */
#define _GNU_SOURCE
#include "analyze/base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 64 };

int array_reserve(void *items, size_t *room, size_t wanted, size_t item_size) {
    size_t first = item_size <= SMALL ? 16 : 1; /* many large ones never hold more than a few */
    size_t places = *room != 0 ? *room : first;
    void *old;
    void *grown;
    if (wanted <= *room) {
        return 0;
    }
    while (places < wanted) {
        if (__builtin_mul_overflow(places, (size_t)2, &places)) {
            return -1;
        }
    }
    memcpy(&old, items, sizeof old); /* whatever it points to: pointers have one form */
    grown = reallocarray(old, places, item_size);
    if (grown == NULL) {
        return -1;
    }
    memcpy(items, &grown, sizeof grown);
    *room = places;
    return 0;
}

int array_grow(void *items, size_t *room, size_t count, size_t item_size) {
    return array_reserve(items, room, count + 1, item_size);
}

int array_grow_by_count(void *items, size_t count, size_t item_size) {
    size_t room = count;
    return (count & (count - 1)) == 0 ? array_reserve(items, &room, count + 1, item_size) : 0;
}

static int array_compare_numbers(const void *left, const void *right, void *offset) {
    uint64_t a;
    uint64_t b;
    memcpy(&a, (const char *)left + *(const size_t *)offset, sizeof a);
    memcpy(&b, (const char *)right + *(const size_t *)offset, sizeof b);
    return (a > b) - (a < b);
}

void array_sort_by(void *items, size_t count, size_t item_size, size_t offset) {
    if (count > 1) {
        qsort_r(items, count, item_size, array_compare_numbers, &offset);
    }
}

void array_sort(void *items, size_t count, size_t item_size,
                int (*compare)(const void *left, const void *right)) {
    if (count > 1) {
        qsort(items, count, item_size, compare);
    }
}
