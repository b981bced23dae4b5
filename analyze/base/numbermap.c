/* SPDX-License-Identifier: MIT */
/*
 * numbermap.c: open addressing, linear probing. See numbermap.h.
 */
#include "analyze/base/numbermap.h"

#include "analyze/base/job.h"

#include <stdbool.h>
#include <stdlib.h>

/* Where the key's chain begins. */
static size_t numbermap_home(const struct numbermap *map, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return (hash ^ hash >> 32) & (map->places - 1);
}

/* The entry that has the key, or the free one where it belongs. */
static struct numbermap_entry *numbermap_place(const struct numbermap *map, uint64_t key) {
    size_t place = numbermap_home(map, key);
    while (map->entries[place].value && map->entries[place].key != key)
        place = (place + 1) & (map->places - 1);
    return &map->entries[place];
}

static bool numbermap_is_full(const struct numbermap *map) {
    return (map->used + 1) * 4 > map->places * 3;
}

static size_t numbermap_more_places(const struct numbermap *map) {
    return map->places ? map->places * 2 : 64;
}

/* Into entries that are cleared. Returns the old ones. */
static struct numbermap_entry *numbermap_move(struct numbermap *map,
                                              struct numbermap_entry *entries) {
    struct numbermap bigger = {
        .entries = entries, .places = numbermap_more_places(map), .used = map->used};
    struct numbermap_entry *old = map->entries;
    for (size_t i = 0; i < map->places; i++)
        if (old[i].value)
            *numbermap_place(&bigger, old[i].key) = old[i];
    *map = bigger;
    return old;
}

static void numbermap_fill(struct numbermap *map, uint64_t key, void *value) {
    struct numbermap_entry *entry = numbermap_place(map, key);
    map->used += !entry->value;
    *entry = (struct numbermap_entry){.key = key, .value = value};
}

void *numbermap_get(const struct numbermap *map, uint64_t key) {
    return map->places ? numbermap_place(map, key)->value : NULL;
}

int numbermap_put(struct numbermap *map, uint64_t key, void *value) {
    if (numbermap_is_full(map)) {
        struct numbermap_entry *entries = calloc(numbermap_more_places(map), sizeof *entries);
        if (!entries)
            return -1;
        free(numbermap_move(map, entries));
    }
    numbermap_fill(map, key, value);
    return 0;
}

void numbermap_set(struct numbermap *map, uint64_t key, void *value) {
    if (numbermap_is_full(map))
        job_release(
            numbermap_move(map, job_array(numbermap_more_places(map), sizeof *map->entries)));
    numbermap_fill(map, key, value);
}

/* Those behind the hole that would no longer be found move up. */
static void numbermap_close_up(struct numbermap *map, size_t hole) {
    size_t mask = map->places - 1;
    for (size_t at = (hole + 1) & mask; map->entries[at].value; at = (at + 1) & mask) {
        if (((at - numbermap_home(map, map->entries[at].key)) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole] = (struct numbermap_entry){0};
}

void *numbermap_take(struct numbermap *map, uint64_t key) {
    struct numbermap_entry *entry = map->places ? numbermap_place(map, key) : NULL;
    void *value = entry ? entry->value : NULL;
    if (value) {
        numbermap_close_up(map, (size_t)(entry - map->entries));
        map->used--;
    }
    return value;
}

void numbermap_free(struct numbermap *map) {
    free(map->entries);
    *map = (struct numbermap){0};
}
