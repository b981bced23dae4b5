/* SPDX-License-Identifier: MIT */
/*
 * nursery.h: the lives of blocks that live, in places that are used again. A life stays at its
 * place, but the address of a place is good only until the next nursery_take().
 *
 * Called by analyze/model/lives. Belongs to one thread.
 */
#ifndef ANALYZE_MODEL_NURSERY_H
#define ANALYZE_MODEL_NURSERY_H

#include "analyze/model/lives.h"

#define NURSERY_NONE SIZE_MAX

/* Start from {.free = NURSERY_NONE}. */
struct nursery {
    struct life *lives; /* birth_order 0: the place is free, death_order is the next free one */
    size_t capacity;
    size_t used; /* places ever taken */
    size_t free;
};

void nursery_end(struct nursery *nursery);

/* A free place, to be filled at once. NURSERY_NONE: out of memory. */
size_t nursery_take(struct nursery *nursery);
void nursery_give_back(struct nursery *nursery, size_t place);

/* Moves those that live to the front, by birth, and returns them. No place is known afterwards. */
const struct life *nursery_sort(struct nursery *nursery, size_t *count);

#endif
