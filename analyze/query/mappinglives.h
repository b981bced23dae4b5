/* SPDX-License-Identifier: MIT */
/*
 * mappinglives.h: mappings (mmap, mremap, brk) from their birth to their end. What is unmapped in
 * pieces ends in pieces: each is told by itself.
 *
 * Called by analyze/query/mappingstable. Belongs to one thread. Start from {0}. Memory: the pieces
 * that are mapped at the same time.
 */
#ifndef ANALYZE_QUERY_MAPPINGLIVES_H
#define ANALYZE_QUERY_MAPPINGLIVES_H

#include "analyze/replay/timeorder.h"

/* [start, end) is of whole pages. freed_ns UINT64_MAX: it was never unmapped. */
struct mapping_life {
    uint64_t id; /* the same for all pieces of a mapping, from 1 on in their order */
    uint64_t start;
    uint64_t end;
    uint64_t born_ns;
    uint64_t freed_ns;
    uint32_t context;
    uint32_t thread;
    uint32_t freed_by;
    uint8_t operation; /* enum memtrace_map_operation that made it */
    uint8_t protection;
    uint8_t flags;
};

struct mapping_lives {
    struct mapping_life *pieces; /* disjoint, by start */
    size_t count;
    size_t capacity;
    uint64_t made;
    int (*ended)(void *context, const struct mapping_life *life); /* not 0: the pass ends with it */
    void *context;
};

/* One event of kind EVENT_MAP. 0, what ended() returned, or -1: out of memory. */
int mapping_lives_take(struct mapping_lives *lives, const struct timeorder_event *event);
/* Hands out what is still mapped, by address. As above. */
int mapping_lives_finish(struct mapping_lives *lives);
void mapping_lives_free(struct mapping_lives *lives);

#endif
