/* SPDX-License-Identifier: MIT */
/* interval.c: disjoint address ranges. See interval.h. */
#include "runtime/heap/interval.h"

#include "runtime/base/sys.h"

enum { BLOCK_BYTES = 4096, BLOCK_RANGES = 169, FIRST_CAPACITY = 512 };

struct interval_block {
    size_t count;
    struct interval_block *next_unused;
    struct interval range[BLOCK_RANGES];
};
_Static_assert(sizeof(struct interval_block) <= BLOCK_BYTES, "a page");

/* Of a range, or behind the last one. */
struct place {
    size_t block, range;
};

static struct interval *at(const struct intervals *set, struct place place) {
    return &set->block[place.block]->range[place.range];
}

/* The first range that ends above the address. */
static struct place interval_first_above(const struct intervals *set, uintptr_t address) {
    struct place place = {0, 0};
    size_t high = set->blocks;
    while (place.block < high) {
        size_t middle = (place.block + high) / 2;
        const struct interval_block *block = set->block[middle];
        if (block->range[block->count - 1].end <= address) {
            place.block = middle + 1;
        } else {
            high = middle;
        }
    }
    high = place.block < set->blocks ? set->block[place.block]->count : 0;
    while (place.range < high) {
        size_t middle = (place.range + high) / 2;
        if (set->block[place.block]->range[middle].end <= address) {
            place.range = middle + 1;
        } else {
            high = middle;
        }
    }
    return place;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* An empty block becomes block number `index`. NULL: no memory. */
static struct interval_block *add_block(struct intervals *set, size_t index) {
    struct interval_block *block = set->unused;
    size_t size = sizeof *set->block;
    if (set->blocks == set->capacity) {
        size_t capacity = set->capacity != 0 ? set->capacity * 2 : FIRST_CAPACITY;
        void *blocks = set->block == NULL
                           ? sys_map(capacity * size)
                           : sys_grow_map(set->block, set->capacity * size, capacity * size);
        if (blocks == NULL) {
            return NULL;
        }
        set->block = blocks;
        set->capacity = capacity;
    }
    if (block != NULL) {
        set->unused = block->next_unused;
    } else if ((block = sys_map(BLOCK_BYTES)) == NULL) {
        return NULL;
    }
    block->count = 0;
    __builtin_memmove(set->block + index + 1, set->block + index, (set->blocks - index) * size);
    set->block[index] = block;
    set->blocks++;
    return block;
}

/* Makes room for a range at this place, in whichever block that then lies. 0, or -1: no memory. */
static int interval_make_room(struct intervals *set, struct place *place) {
    struct interval_block *full;
    struct interval_block *half;
    if (place->block == set->blocks && set->blocks != 0) { /* behind the last one */
        place->block--;
        place->range = set->block[place->block]->count;
    }
    if (set->blocks == 0) {
        return add_block(set, 0) != NULL ? 0 : -1;
    }
    full = set->block[place->block];
    if (full->count < BLOCK_RANGES) {
        return 0;
    }
    half = add_block(set, place->block + 1);
    if (half == NULL) {
        return -1;
    }
    full->count = BLOCK_RANGES / 2;
    half->count = BLOCK_RANGES - full->count;
    __builtin_memcpy(half->range, full->range + full->count, half->count * sizeof *half->range);
    if (place->range > full->count) {
        place->block++;
        place->range -= full->count;
    }
    return 0;
}

/* --- ranges ----------------------------------------------------------------------------------- */

int interval_add(struct intervals *set, struct interval range) {
    struct place place = interval_first_above(set, range.start);
    struct interval_block *block;
    if (interval_make_room(set, &place) != 0) {
        return -1;
    }
    block = set->block[place.block];
    __builtin_memmove(block->range + place.range + 1, block->range + place.range,
                      (block->count - place.range) * sizeof *block->range);
    block->range[place.range] = range;
    block->count++;
    set->count++;
    return 0;
}

/* What stands at `place` is then the next one. */
static void step_over_end(const struct intervals *set, struct place *place) {
    if (place->block < set->blocks && place->range == set->block[place->block]->count) {
        place->block++;
        place->range = 0;
    }
}

static void erase(struct intervals *set, struct place *place) {
    struct interval_block *block = set->block[place->block];
    block->count--;
    set->count--;
    __builtin_memmove(block->range + place->range, block->range + place->range + 1,
                      (block->count - place->range) * sizeof *block->range);
    if (block->count == 0) {
        block->next_unused = set->unused;
        set->unused = block;
        set->blocks--;
        __builtin_memmove(set->block + place->block, set->block + place->block + 1,
                          (set->blocks - place->block) * sizeof *set->block);
    } else {
        step_over_end(set, place);
    }
}

void interval_remove(struct intervals *set, uintptr_t start, uintptr_t end,
                     void (*removed)(void *argument, const struct interval *piece, int is_last),
                     void *argument) {
    struct place place = interval_first_above(set, start);
    while (place.block < set->blocks && at(set, place)->start < end) {
        struct interval *range = at(set, place);
        struct interval whole = *range;
        struct interval piece = whole;
        piece.start = whole.start > start ? whole.start : start;
        piece.end = whole.end < end ? whole.end : end;
        if (piece.start == whole.start && piece.end == whole.end) {
            erase(set, &place);
            removed(argument, &piece, !whole.is_part);
            continue;
        }
        removed(argument, &piece, 0);
        if (piece.start == whole.start) { /* the left end goes */
            range->start = piece.end;
        } else if (piece.end == whole.end) { /* the right end goes */
            range->end = piece.start;
        } else { /* a hole */
            struct interval right = whole;
            right.start = piece.end;
            right.is_part = 1;
            range->end = piece.start;
            interval_add(set, right);
            break;
        }
        place.range++;
        step_over_end(set, &place);
    }
}

const struct interval *interval_find(const struct intervals *set, uintptr_t address) {
    struct place place = interval_first_above(set, address);
    const struct interval *range = place.block < set->blocks ? at(set, place) : NULL;
    return range != NULL && range->start <= address ? range : NULL;
}

void interval_visit(const struct intervals *set,
                    void (*visit)(void *argument, struct interval *range), void *argument) {
    struct place place = {0, 0};
    for (; place.block < set->blocks; place.block++) {
        for (place.range = 0; place.range < set->block[place.block]->count; place.range++) {
            visit(argument, at(set, place));
        }
    }
}
