/* SPDX-License-Identifier: MIT */
/*
 * interval.h: the program's mappings: disjoint address ranges, each with the context that made it.
 * In order of addresses, in blocks of a page, so that a change moves a block's worth at most
 * however many there are. The caller holds the lock.
 */
#ifndef RUNTIME_HEAP_INTERVAL_H
#define RUNTIME_HEAP_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

struct interval {
    uintptr_t start, end;
    uint32_t context;
    uint8_t is_part; /* the right half of a range with a hole: its other half counts the free */
    uint8_t is_inherited;      /* a forked child was born with it, and has not counted it yet */
    uint8_t protection, flags; /* as mmap was given them: the lowest 8 bits */
};

struct interval_block;

struct intervals {
    struct interval_block **block; /* sorted; none is empty */
    size_t blocks, capacity;
    struct interval_block *unused;
    size_t count; /* of ranges */
};

/* A range that was free. 0, or -1: no memory. */
int interval_add(struct intervals *set, struct interval range);

/* Takes [start, end) out, cutting what reaches over. Calls removed() with each piece. */
void interval_remove(struct intervals *set, uintptr_t start, uintptr_t end,
                     void (*removed)(void *argument, const struct interval *piece, int is_last),
                     void *argument);

/* The range that holds `address`; NULL: none does. Until the set is changed. */
const struct interval *interval_find(const struct intervals *set, uintptr_t address);

/* Calls visit() for each range, in order. */
void interval_visit(const struct intervals *set,
                    void (*visit)(void *argument, struct interval *range), void *argument);

#endif
