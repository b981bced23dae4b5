/* SPDX-License-Identifier: MIT */
/* liveblocks.c: an array of lives with a list of its free places. See liveblocks.h. */
#include "analyze/replay/liveblocks.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

void liveblocks_end(struct liveblocks *liveblocks) {
    free(liveblocks->lives);
    *liveblocks = (struct liveblocks){.free = NURSERY_NONE};
}

size_t liveblocks_take(struct liveblocks *liveblocks) {
    size_t place = liveblocks->free;
    if (place != NURSERY_NONE) {
        liveblocks->free = (size_t)liveblocks->lives[place].death_order;
        return place;
    }
    if (liveblocks->used == liveblocks->capacity) {
        size_t capacity = liveblocks->capacity != 0 ? liveblocks->capacity * 2 : FIRST_CAPACITY;
        struct life *grown = reallocarray(liveblocks->lives, capacity, sizeof *grown);
        if (grown == NULL) {
            return NURSERY_NONE;
        }
        liveblocks->lives = grown;
        liveblocks->capacity = capacity;
    }
    return liveblocks->used++;
}

void liveblocks_give_back(struct liveblocks *liveblocks, size_t place) {
    liveblocks->lives[place].birth_order = 0;
    liveblocks->lives[place].death_order = liveblocks->free;
    liveblocks->free = place;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

const struct life *liveblocks_sort(struct liveblocks *liveblocks, size_t *count) {
    size_t living = 0;
    for (size_t i = 0; i < liveblocks->used; i++) {
        if (liveblocks->lives[i].birth_order != 0) {
            liveblocks->lives[living++] = liveblocks->lives[i];
        }
    }
    if (living != 0) {
        qsort(liveblocks->lives, living, sizeof *liveblocks->lives, by_birth);
    }
    liveblocks->used = living;
    liveblocks->free = NURSERY_NONE;
    *count = living;
    return liveblocks->lives;
}
