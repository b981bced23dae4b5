/* SPDX-License-Identifier: MIT */
/*
 * area.h: the upper bits of frames by number, so that a node of the context tree needs 8 bytes
 * (format.h: memtrace_unpack). Rules carry the area of their code, so no walk looks for one.
 *
 * Invariants: an area's number is final; it stands in the profile before a node names it. What the
 * program works with is private memory: a light child goes on with what was there at the fork, and
 * writes its own into the profile when that is its own.
 */
#ifndef RUNTIME_STACK_AREA_H
#define RUNTIME_STACK_AREA_H

#include "runtime/base/compiler.h"
#include "runtime/base/space.h"

enum {
    AREA_BITS = 13, /* each of the 4,095 modules has one, large ones some more */
    AREA_LIMIT = 1 << AREA_BITS,
    AREA_NONE = AREA_LIMIT - 1, /* never given out: no room for another */
    AREA_LEAVES = AREA_LIMIT / MEMTRACE_AREA_LEAF_ITEMS,
    AREA_FIRST = sizeof(struct memtrace_segment) / sizeof(uint64_t), /* of each leaf */
};

struct areas {
    struct space *space;
    uint64_t *start;             /* by number; 0: free; NULL: no memory */
    uint64_t *leaf[AREA_LEAVES]; /* the same in the profile */
};

void area_init(struct areas *areas, struct space *space);
/* The number of the area of this frame (format.h: struct memtrace_node), made if it is new;
 * AREA_NONE: no room, which is counted. Any thread, any time. */
uint32_t area_find(struct areas *areas, uint64_t frame);
/* In a child whose profile is its own from now on: writes all into it. */
void area_write_all(struct areas *areas);
/* Whether this segment is a leaf as we know it. */
int area_is_leaf(const struct areas *areas, const struct memtrace_segment *segment);

INLINE uint64_t area_start(const struct areas *areas, uint64_t packed) {
    uint64_t number = packed >> MEMTRACE_NODE_AREA_SHIFT;
    return LIKELY(areas->start != NULL && number < AREA_LIMIT) ? LOAD_RELAXED(&areas->start[number])
                                                               : 0;
}

#endif
