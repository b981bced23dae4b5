/* SPDX-License-Identifier: MIT */
/*
 * ranges.h: the mappings that a program has at a moment of its replay: disjoint address ranges,
 * each with the context that made it. A sorted array: programs have few and change them rarely.
 *
 * Called by analyze/window/wholemodel. Belongs to one thread. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_RANGES_H
#define ANALYZE_REPLAY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint64_t start;
    uint64_t end;
    uint64_t born_ns;
    uint32_t context;
    bool is_part; /* what lies right of a hole: the mapping's end is counted with its left part */
};

struct ranges {
    struct range *items;
    size_t count;
    size_t capacity;
};

void ranges_free(struct ranges *ranges);

/* Notes a new range. 0, or -1: out of memory. */
int ranges_add(struct ranges *ranges, struct range range);

/* Takes [start, end) out and cuts what reaches over; removed() sees each piece, is_last: with it
 * the whole mapping is gone. 0, or -1: out of memory. */
int ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end,
                  void (*removed)(void *argument, const struct range *piece, bool is_last),
                  void *argument);

#endif
