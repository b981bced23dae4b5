/* SPDX-License-Identifier: MIT */
/*
 * blockmap.h: a hash table from a block's name to what is known of it: open addressing, each chain
 * closed up when an item leaves, so that it never holds anything but live items.
 *
 * Called by analyze/model/pairing. Belongs to one thread. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_BLOCKMAP_H
#define ANALYZE_REPLAY_BLOCKMAP_H

#include "analyze/replay/pairing.h"

struct blockmap_item {
    uint64_t key; /* 0: empty */
    struct pairing_block block;
};

struct blockmap {
    struct blockmap_item *items;
    size_t capacity; /* a power of two, at least 4/3 of count */
    size_t count;
};

void blockmap_free(struct blockmap *map);
/* Puts it in, in place of one with the same key. key != 0. 0, or -1: out of memory. */
int blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block);
/* Takes it out. 1 or 0: not there. */
int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block);

#endif
