/* SPDX-License-Identifier: MIT */
/* blockmap.c: live blocks by name. See blockmap.h. */
#include "analyze/replay/blockmap.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

/* Where an item would be if it were alone: multiplication spreads numbers that follow each other.
 */
static size_t home(const struct blockmap *map, uint64_t key) {
    uint64_t spread = key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(spread ^ spread >> 32) & (map->capacity - 1);
}

/* The place of the key, or the empty one where it belongs. */
static size_t find(const struct blockmap *map, uint64_t key) {
    size_t at = home(map, key);
    while (map->items[at].key != 0 && map->items[at].key != key) {
        at = (at + 1) & (map->capacity - 1);
    }
    return at;
}

static int grow(struct blockmap *map) {
    struct blockmap larger = {.capacity = map->capacity != 0 ? map->capacity * 2 : FIRST_CAPACITY,
                              .count = map->count};
    larger.items = calloc(larger.capacity, sizeof *larger.items);
    if (larger.items == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->items[i].key != 0) {
            larger.items[find(&larger, map->items[i].key)] = map->items[i];
        }
    }
    free(map->items);
    *map = larger;
    return 0;
}

void blockmap_free(struct blockmap *map) {
    free(map->items);
    *map = (struct blockmap){0};
}

int blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block) {
    size_t at;
    if (map->count + map->count / 3 + 1 >= map->capacity && grow(map) != 0) {
        return -1;
    }
    at = find(map, key);
    map->count += map->items[at].key == 0;
    map->items[at] = (struct blockmap_item){key, *block};
    return 0;
}

/* Moves back what the gap at `gap` would hide from its searchers. */
static void close_gap(struct blockmap *map, size_t gap) {
    size_t mask = map->capacity - 1;
    for (size_t at = (gap + 1) & mask; map->items[at].key != 0; at = (at + 1) & mask) {
        if (((at - home(map, map->items[at].key)) & mask) >= ((at - gap) & mask)) {
            map->items[gap] = map->items[at];
            gap = at;
        }
    }
    map->items[gap].key = 0;
}

int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block) {
    size_t at;
    if (map->count == 0) {
        return 0;
    }
    at = find(map, key);
    if (map->items[at].key == 0) {
        return 0;
    }
    *block = map->items[at].block;
    close_gap(map, at);
    map->count--;
    return 1;
}
