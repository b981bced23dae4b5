/* SPDX-License-Identifier: MIT */
/*
 * numbermap.c: open addressing, linear probing. See numbermap.h.
 */
#include "analyze/base/numbermap.h"

#include <stdlib.h>

/* Where the key's chain begins. */
static size_t home(const struct numbermap *map, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return (hash ^ hash >> 32) & (map->places - 1);
}

/* The entry that has the key, or the free one where it belongs. */
static struct numbermap_entry *find(const struct numbermap *map, uint64_t key) {
    size_t place = home(map, key);
    while (map->entries[place].value && map->entries[place].key != key)
        place = (place + 1) & (map->places - 1);
    return &map->entries[place];
}

static int grow(struct numbermap *map) {
    struct numbermap bigger = {.places = map->places ? map->places * 2 : 64};
    bigger.entries = calloc(bigger.places, sizeof *bigger.entries);
    if (!bigger.entries)
        return -1;
    for (size_t i = 0; i < map->places; i++)
        if (map->entries[i].value)
            *find(&bigger, map->entries[i].key) = map->entries[i];
    bigger.used = map->used;
    free(map->entries);
    *map = bigger;
    return 0;
}

void *numbermap_get(const struct numbermap *map, uint64_t key) {
    return map->places ? find(map, key)->value : NULL;
}

int numbermap_put(struct numbermap *map, uint64_t key, void *value) {
    if ((map->used + 1) * 4 > map->places * 3 && grow(map) != 0)
        return -1;
    struct numbermap_entry *entry = find(map, key);
    map->used += !entry->value;
    *entry = (struct numbermap_entry){.key = key, .value = value};
    return 0;
}

/* Those behind the hole that would no longer be found move up. */
static void close_up(struct numbermap *map, size_t hole) {
    size_t mask = map->places - 1;
    for (size_t at = (hole + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
        if (((at - home(map, map->entries[at].key)) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole] = (struct numbermap_entry){0};
}

void *numbermap_take(struct numbermap *map, uint64_t key) {
    struct numbermap_entry *entry = map->places ? find(map, key) : NULL;
    void *value = entry ? entry->value : NULL;
    if (value) {
        close_up(map, (size_t)(entry - map->entries));
        map->used--;
    }
    return value;
}

void numbermap_free(struct numbermap *map) {
    free(map->entries);
    *map = (struct numbermap){0};
}
