/* SPDX-License-Identifier: MIT */
/* area.c: numbers for the upper bits of frames. See area.h. */
#include "runtime/stack/area.h"

#include "runtime/base/sys.h"

void area_init(struct areas *areas, struct space *space) {
    areas->space = space;
    areas->start = sys_map(AREA_LIMIT * sizeof *areas->start);
}

/* -1: no room. A light child's profile is not its own. */
static int write_area(struct areas *areas, uint32_t number) {
    uint32_t index = number / MEMTRACE_AREA_LEAF_ITEMS;
    uint64_t *leaf;
    if (areas->space->is_private) {
        return 0;
    }
    leaf = space_leaf(areas->space, &areas->leaf[index], MEMTRACE_SEGMENT_AREAS, index,
                      sizeof *leaf, MEMTRACE_AREA_LEAF_ITEMS);
    if (leaf == NULL) {
        return -1;
    }
    STORE_RELEASE(&leaf[number % MEMTRACE_AREA_LEAF_ITEMS], LOAD_RELAXED(&areas->start[number]));
    return 0;
}

/* The next number that can be given out, from this one on. */
static uint32_t next_number(uint32_t number) {
    return number % MEMTRACE_AREA_LEAF_ITEMS != 0 ? number : number + AREA_FIRST;
}

uint32_t area_find(struct areas *areas, uint64_t frame) {
    uint64_t start = frame & ~MEMTRACE_NODE_FRAME_MASK;
    if (start == 0) {
        return 0;
    }
    for (uint32_t i = next_number(0); areas->start != NULL && i < AREA_NONE;
         i = next_number(i + 1)) {
        uint64_t there = LOAD_RELAXED(&areas->start[i]);
        if (there == start ||
            (there == 0 && (__atomic_compare_exchange_n(&areas->start[i], &there, start, 0,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                            there == start))) {
            /* Also where it is: another thread may have taken the number and not written yet. */
            if (write_area(areas, i) == 0) {
                return i;
            }
            break;
        }
    }
    space_lost(areas->space, MEMTRACE_LOST_MODULES, 1);
    return AREA_NONE;
}

void area_write_all(struct areas *areas) {
    for (uint32_t i = next_number(0); areas->start != NULL && i < AREA_NONE;
         i = next_number(i + 1)) {
        if (LOAD_RELAXED(&areas->start[i]) == 0) {
            break;
        }
        if (write_area(areas, i) != 0) {
            space_lost(areas->space, MEMTRACE_LOST_MODULES, 1);
            break;
        }
    }
}

int area_is_leaf(const struct areas *areas, const struct memtrace_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_AREAS && segment->index < AREA_LEAVES &&
           (const void *)areas->leaf[segment->index] == (const void *)segment;
}
