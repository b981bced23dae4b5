/* SPDX-License-Identifier: MIT */
/* blockmap.c: live blocks by name. See blockmap.h. */
#include "analyze/replay/blockmap.h"

#include "analyze/base/job.h"

enum { FIRST_CAPACITY = 16, DOUBLED_UP_TO = 4096 };

/* Multiplication spreads numbers that follow each other. The upper eight bits choose the part, the
 * lower 32 the place in it. */
static uint64_t blockmap_spread(uint64_t key) {
    uint64_t product = key * UINT64_C(0x9e3779b97f4a7c15);
    return product ^ product >> 32;
}

static struct blockmap_part *blockmap_part_of(struct blockmap *map, uint64_t key) {
    return &map->parts[blockmap_spread(key) >> 56];
}

/* Where an item would be if it were alone. */
static uint32_t blockmap_home(const struct blockmap_part *part, uint64_t key) {
    return (uint32_t)((blockmap_spread(key) & UINT32_MAX) * part->capacity >> 32);
}

static uint32_t blockmap_after(const struct blockmap_part *part, uint32_t at) {
    return at + 1 < part->capacity ? at + 1 : 0;
}

/* The place of the key, or the empty one where it belongs. */
static uint32_t blockmap_find(const struct blockmap_part *part, uint64_t key) {
    uint32_t at = blockmap_home(part, key);
    while (part->items[at].key != 0 && part->items[at].key != key) {
        at = blockmap_after(part, at);
    }
    return at;
}

static void blockmap_grow(struct blockmap_part *part) {
    struct blockmap_part larger = {.count = part->count};
    uint64_t capacity = part->capacity < DOUBLED_UP_TO
                            ? (uint64_t)part->capacity * 2
                            : (uint64_t)part->capacity + part->capacity / 4;
    if (capacity > UINT32_MAX) {
        job_fail_memory();
    }
    larger.capacity = capacity != 0 ? (uint32_t)capacity : FIRST_CAPACITY;
    larger.items = job_array(larger.capacity, sizeof *larger.items);
    for (uint32_t i = 0; i < part->capacity; i++) {
        if (part->items[i].key != 0) {
            larger.items[blockmap_find(&larger, part->items[i].key)] = part->items[i];
        }
    }
    job_release(part->items);
    *part = larger;
}

void blockmap_free(struct blockmap *map) {
    for (size_t i = 0; i < BLOCKMAP_PARTS; i++) {
        job_release(map->parts[i].items);
    }
    *map = (struct blockmap){0};
}

void blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block) {
    struct blockmap_part *part = blockmap_part_of(map, key);
    uint32_t at;
    int is_new;
    if (part->count >= part->capacity / 4 * 3) {
        blockmap_grow(part);
    }
    at = blockmap_find(part, key);
    is_new = part->items[at].key == 0;
    part->count += (uint32_t)is_new;
    map->count += (size_t)is_new;
    part->items[at] = (struct blockmap_item){key, *block};
}

/* How far it is from one place to another, going forwards. */
static uint32_t blockmap_distance(const struct blockmap_part *part, uint32_t from, uint32_t to) {
    return to >= from ? to - from : to + (part->capacity - from);
}

/* Moves back what the gap at `gap` would hide from its searchers. */
static void blockmap_close_gap(struct blockmap_part *part, uint32_t gap) {
    for (uint32_t at = blockmap_after(part, gap); part->items[at].key != 0;
         at = blockmap_after(part, at)) {
        uint32_t from_home = blockmap_distance(part, blockmap_home(part, part->items[at].key), at);
        if (from_home >= blockmap_distance(part, gap, at)) {
            part->items[gap] = part->items[at];
            gap = at;
        }
    }
    part->items[gap].key = 0;
}

int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block) {
    struct blockmap_part *part = blockmap_part_of(map, key);
    uint32_t at;
    if (part->count == 0) {
        return 0;
    }
    at = blockmap_find(part, key);
    if (part->items[at].key == 0) {
        return 0;
    }
    *block = part->items[at].block;
    blockmap_close_gap(part, at);
    part->count--;
    map->count--;
    return 1;
}

int blockmap_each(const struct blockmap *map,
                  int (*visit)(void *context, const struct blockmap_item *item), void *context) {
    int result = 0;
    for (size_t i = 0; i < BLOCKMAP_PARTS; i++) {
        const struct blockmap_part *part = &map->parts[i];
        for (uint32_t at = 0; at < part->capacity && result == 0; at++) {
            if (part->items[at].key != 0) {
                result = visit(context, &part->items[at]);
            }
        }
    }
    return result;
}
