/* SPDX-License-Identifier: MIT */
/*
 * blockmap.h: a hash table from a block's name to what is known of it: open addressing, each chain
 * closed up when an item leaves, so that it never holds anything but live items. It is cut into
 * parts that grow each for itself, large ones by a quarter: a recording may have a hundred million
 * live blocks, and no moment needs twice their memory.
 *
 * Called by analyze/replay/pairing and collect/transform/importer. Belongs to a job. Start from
 * {0}.
 */
#ifndef ANALYZE_REPLAY_BLOCKMAP_H
#define ANALYZE_REPLAY_BLOCKMAP_H

#include "analyze/replay/pairing.h"

struct blockmap_item {
    uint64_t key; /* 0: empty */
    struct pairing_block block;
};

struct blockmap_part {
    struct blockmap_item *items;
    uint32_t capacity; /* at least 4/3 of count */
    uint32_t count;
};

enum { BLOCKMAP_PARTS = 256 };

struct blockmap {
    struct blockmap_part parts[BLOCKMAP_PARTS];
    size_t count;
};

/* Frees it early. */
void blockmap_free(struct blockmap *map);
/* Puts it in, in place of one with the same key. key != 0. */
void blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block);
/* Takes it out. 1 or 0: not there. */
int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block);
/* All items, in no order; the visitor stops it by what is not 0, which it returns. */
int blockmap_each(const struct blockmap *map,
                  int (*visit)(void *context, const struct blockmap_item *item), void *context);

#endif
