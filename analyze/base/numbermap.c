/* SPDX-License-Identifier: MIT */
/*
 * numbermap.c: open addressing, linear probing. See numbermap.h.
 */
#include "analyze/base/numbermap.h"

#include <stdlib.h>

/* The entry that has the key, or the free one where it belongs. */
static struct numbermap_entry *find(const struct numbermap *map, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t place = (hash ^ hash >> 32) & (map->places - 1);
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

void numbermap_free(struct numbermap *map) {
    free(map->entries);
    *map = (struct numbermap){0};
}
