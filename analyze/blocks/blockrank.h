/* SPDX-License-Identifier: MIT */
/*
 * blockrank.h: the few blocks that come first in some order, out of any number: a heap with the
 * last one of them on top.
 *
 * Called by analyze/blocks/detail. Belongs to one thread.
 */
#ifndef ANALYZE_BLOCKS_BLOCKRANK_H
#define ANALYZE_BLOCKS_BLOCKRANK_H

#include "analyze/blocks/detail.h"

struct blockrank {
    struct life *lives;
    size_t count;
    size_t limit;
    enum detail_order order;
    uint64_t end_ns; /* until when a block that lives has lived */
};

/* limit 0: keeps none. Of the job. */
void blockrank_start(struct blockrank *rank, enum detail_order order, size_t limit,
                     uint64_t end_ns);
void blockrank_add(struct blockrank *rank, const struct life *life);

/* The blocks, sorted. */
struct life *blockrank_take(struct blockrank *rank, size_t *count);

#endif
