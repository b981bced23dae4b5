/* SPDX-License-Identifier: MIT */
/*
 * numbermap.c: open addressing, linear probing. See numbermap.h.
 */
#include "analyze/base/numbermap.h"

#include "analyze/base/job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Where the key's chain begins. */
static size_t numbermap_home(const struct numbermap *map, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return (hash ^ hash >> 32) & (map->places - 1);
}

/* The entry that has the key, or the free one where it belongs. */
static struct numbermap_entry *numbermap_place(const struct numbermap *map, uint64_t key) {
    size_t place = numbermap_home(map, key);
    while (map->entries[place].value && map->entries[place].key != key) {
        place = (place + 1) & (map->places - 1);
    }
    return &map->entries[place];
}

static bool numbermap_is_full(const struct numbermap *map) {
    return (map->used + 1) * 4 > map->places * 3;
}

static size_t numbermap_more_places(const struct numbermap *map) {
    return map->places ? map->places * 2 : 64;
}

/* Those of another table, which is smaller, into a cleared one. */
static void numbermap_copy(struct numbermap *map, const struct numbermap_entry *entries,
                           size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (entries[i].value) {
            *numbermap_place(map, entries[i].key) = entries[i];
        }
    }
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
        struct numbermap bigger = {.places = numbermap_more_places(map), .used = map->used};
        bigger.entries = calloc(bigger.places, sizeof *bigger.entries);
        if (!bigger.entries) {
            return -1;
        }
        numbermap_copy(&bigger, map->entries, map->places);
        free(map->entries);
        *map = bigger;
    }
    numbermap_fill(map, key, value);
    return 0;
}

/* The table has to stay with the job that it was begun in: so the old entries move, not the new
 * ones. */
static void numbermap_grow(struct numbermap *map) {
    size_t count = map->places;
    struct numbermap_entry *old = job_array(count, sizeof *old);
    if (count) {
        memcpy(old, map->entries, count * sizeof *old);
    }
    job_reserve(&map->entries, &map->places, numbermap_more_places(map), sizeof *map->entries);
    memset(map->entries, 0, map->places * sizeof *map->entries);
    numbermap_copy(map, old, count);
    job_release(old);
}

void numbermap_set(struct numbermap *map, uint64_t key, void *value) {
    if (numbermap_is_full(map)) {
        numbermap_grow(map);
    }
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
