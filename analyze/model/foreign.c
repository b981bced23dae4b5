/* SPDX-License-Identifier: MIT */
/* foreign.c: what threads freed of each other. See foreign.h. */
#include "analyze/model/foreign.h"

#include <stdlib.h>

void foreign_free(struct foreign *foreign) {
    free(foreign->pairs);
    numbermap_free(&foreign->places);
    *foreign = (struct foreign){0};
}

static uint64_t key_of(const struct model_foreign *pair) {
    return (uint64_t)pair->freer << 32 | pair->owner;
}

static int put_place(struct foreign *foreign, size_t index) {
    return numbermap_put(&foreign->places, key_of(&foreign->pairs[index]),
                         (void *)(uintptr_t)(index + 1));
}

/* After sorting the places are no longer known. */
static int find_places_again(struct foreign *foreign) {
    for (size_t i = 0; i < foreign->count; i++) {
        if (put_place(foreign, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static struct model_foreign *append(struct foreign *foreign, uint32_t freer, uint32_t owner) {
    enum { FIRST = 64 };
    if (foreign->count == foreign->capacity) {
        size_t capacity = foreign->capacity != 0 ? foreign->capacity * 2 : FIRST;
        struct model_foreign *grown = reallocarray(foreign->pairs, capacity, sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        foreign->pairs = grown;
        foreign->capacity = capacity;
    }
    foreign->pairs[foreign->count] = (struct model_foreign){.freer = freer, .owner = owner};
    if (put_place(foreign, foreign->count) != 0) {
        return NULL;
    }
    return &foreign->pairs[foreign->count++];
}

int foreign_add(struct foreign *foreign, struct model_foreign more) {
    struct model_foreign *pair;
    uintptr_t place;
    if (foreign->places.used != foreign->count && find_places_again(foreign) != 0) {
        return -1;
    }
    place = (uintptr_t)numbermap_get(&foreign->places, key_of(&more));
    pair = place != 0 ? &foreign->pairs[place - 1] : append(foreign, more.freer, more.owner);
    if (pair == NULL) {
        return -1;
    }
    pair->blocks += more.blocks;
    pair->bytes += more.bytes;
    return 0;
}

static int compare(const void *left, const void *right) {
    uint64_t a = key_of(left);
    uint64_t b = key_of(right);
    return (a > b) - (a < b);
}

void foreign_sort(struct foreign *foreign) {
    if (foreign->count != 0) {
        qsort(foreign->pairs, foreign->count, sizeof *foreign->pairs, compare);
        numbermap_free(&foreign->places);
    }
}

void foreign_clear(struct foreign *foreign) {
    foreign->count = 0;
    numbermap_free(&foreign->places);
}
