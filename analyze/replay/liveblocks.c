/* SPDX-License-Identifier: MIT */
/* liveblocks.c: an array of lives with a list of its free places. See liveblocks.h. */
#include "analyze/replay/liveblocks.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

void liveblocks_end(struct liveblocks *nursery) {
    free(nursery->lives);
    *nursery = (struct liveblocks){.free = NURSERY_NONE};
}

size_t liveblocks_take(struct liveblocks *nursery) {
    size_t place = nursery->free;
    if (place != NURSERY_NONE) {
        nursery->free = (size_t)nursery->lives[place].death_order;
        return place;
    }
    if (nursery->used == nursery->capacity) {
        size_t capacity = nursery->capacity != 0 ? nursery->capacity * 2 : FIRST_CAPACITY;
        struct life *grown = reallocarray(nursery->lives, capacity, sizeof *grown);
        if (grown == NULL) {
            return NURSERY_NONE;
        }
        nursery->lives = grown;
        nursery->capacity = capacity;
    }
    return nursery->used++;
}

void liveblocks_give_back(struct liveblocks *nursery, size_t place) {
    nursery->lives[place].birth_order = 0;
    nursery->lives[place].death_order = nursery->free;
    nursery->free = place;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

const struct life *liveblocks_sort(struct liveblocks *nursery, size_t *count) {
    size_t living = 0;
    for (size_t i = 0; i < nursery->used; i++) {
        if (nursery->lives[i].birth_order != 0) {
            nursery->lives[living++] = nursery->lives[i];
        }
    }
    if (living != 0) {
        qsort(nursery->lives, living, sizeof *nursery->lives, by_birth);
    }
    nursery->used = living;
    nursery->free = NURSERY_NONE;
    *count = living;
    return nursery->lives;
}
