/* SPDX-License-Identifier: MIT */
/*
 * numbermap.h: a hash table from a 64-bit number to a pointer.
 *
 * Called from all over the tools. Any thread, one at a time for one map.
 */
#ifndef ANALYZE_BASE_NUMBERMAP_H
#define ANALYZE_BASE_NUMBERMAP_H

#include <stddef.h>
#include <stdint.h>

/* All zero is empty and ready. A place is free where value is NULL; used * 4 <= places * 3. */
struct numbermap {
    struct numbermap_entry {
        uint64_t key;
        void *value;
    } * entries;
    size_t places; /* 0 or a power of two */
    size_t used;
};

/* NULL: not there. */
void *numbermap_get(const struct numbermap *map, uint64_t key);
/* Adds or replaces; value must not be NULL. 0, or -1: out of memory. */
int numbermap_put(struct numbermap *map, uint64_t key, void *value);
/* The same in a job; the table belongs to the one in which it was begun. For maps to which nothing
 * else adds, and which nobody frees. */
void numbermap_set(struct numbermap *map, uint64_t key, void *value);
/* Takes it out. Its value; NULL: it was not there. */
void *numbermap_take(struct numbermap *map, uint64_t key);
/* Frees the table, not what its values point to. */
void numbermap_free(struct numbermap *map);

#endif
