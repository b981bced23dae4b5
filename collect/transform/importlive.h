/* SPDX-License-Identifier: MIT */
/*
 * importlive.h: which blocks of an imported file live, by the keys under which it ends them
 * (heaptrackfile.h). Memory grows with the blocks that live and with the number of keys.
 *
 * Called by collect/importer. Start from {0}.
 */
#ifndef COLLECT_TRANSFORM_IMPORTLIVE_H
#define COLLECT_TRANSFORM_IMPORTLIVE_H

#include "analyze/import/heaptrackfile.h"
#include "analyze/replay/blockmap.h"

/* A block: its number in the recording, and the one with the same key that began before it. */
struct importlive_block {
    uint64_t number;
    uint64_t size;
    size_t before; /* place + 1; 0: none */
};

struct importlive {
    struct blockmap addresses;
    size_t *newest; /* by key: place + 1 of the one that began last; 0: none lives */
    size_t key_count;
    struct importlive_block *blocks;
    size_t block_count;
    size_t block_capacity;
    size_t free; /* place + 1 of the first free one, linked by `before` */
};

/* 0, or -1: out of memory. */
int importlive_begin(struct importlive *live, enum heaptrackfile_key kind, uint64_t key,
                     uint64_t number, uint64_t size);
/* The block that ends; number 0: none is known. */
struct importlive_block importlive_end(struct importlive *live, enum heaptrackfile_key kind,
                                       uint64_t key);
void importlive_free(struct importlive *live);

#endif
