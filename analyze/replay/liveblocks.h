/* SPDX-License-Identifier: MIT */
/*
 * liveblocks.h: the lives of blocks that live, in places that are used again. A life stays at its
 * place, but the address of a place is good only until the next liveblocks_take().
 *
 * Called by analyze/model/lives. Belongs to one thread.
 */
#ifndef ANALYZE_REPLAY_LIVEBLOCKS_H
#define ANALYZE_REPLAY_LIVEBLOCKS_H

#include "analyze/replay/lives.h"

#define NURSERY_NONE SIZE_MAX

/* Start from {.free = NURSERY_NONE}. */
struct liveblocks {
    struct life *lives; /* birth_order 0: the place is free, death_order is the next free one */
    size_t capacity;
    size_t used; /* places ever taken */
    size_t free;
};

void liveblocks_end(struct liveblocks *liveblocks);

/* A free place, to be filled at once. NURSERY_NONE: out of memory. */
size_t liveblocks_take(struct liveblocks *liveblocks);
void liveblocks_give_back(struct liveblocks *liveblocks, size_t place);

/* Moves those that live to the front, by birth, and returns them. No place is known afterwards. */
const struct life *liveblocks_sort(struct liveblocks *liveblocks, size_t *count);

#endif
