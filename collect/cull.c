/* SPDX-License-Identifier: MIT */
/* cull.c: what lives too short to be written. See cull.h. */
#include "collect/cull.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

struct cull_entry {
    uint64_t key;
    uint64_t value;
};

/* --- the map ---------------------------------------------------------------------------------- */

/* Thread ids have 12 bits, numbers 48; 0 is no block. */
static uint64_t key_of(struct event_block block) {
    return block.number << MEMTRACE_THREAD_BITS | block.thread;
}

static struct cull_entry *find(const struct cull_map *map, uint64_t key) {
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    while (map->entries[i & (map->capacity - 1)].key != 0 &&
           map->entries[i & (map->capacity - 1)].key != key) {
        i++;
    }
    return &map->entries[i & (map->capacity - 1)];
}

static int grow(struct cull_map *map) {
    struct cull_map grown = {.count = map->count,
                             .capacity = map->capacity != 0 ? map->capacity * 2 : FIRST_CAPACITY};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].key != 0) {
            *find(&grown, map->entries[i].key) = map->entries[i];
        }
    }
    free(map->entries);
    *map = grown;
    return 0;
}

static int put(struct cull_map *map, struct event_block block, uint64_t value) {
    struct cull_entry *entry;
    if (map->count * 2 >= map->capacity && grow(map) != 0) {
        return -1;
    }
    entry = find(map, key_of(block));
    map->count += entry->key == 0;
    *entry = (struct cull_entry){key_of(block), value};
    return 0;
}

static const struct cull_entry *get(const struct cull_map *map, struct event_block block) {
    const struct cull_entry *entry = map->count != 0 ? find(map, key_of(block)) : NULL;
    return entry != NULL && entry->key != 0 ? entry : NULL;
}

/* Takes a block out, if it is there: what stands behind it moves up, so that it is still found. */
static bool take(struct cull_map *map, struct event_block block) {
    const struct cull_entry *found = get(map, block);
    size_t hole;
    if (found == NULL) {
        return false;
    }
    hole = (size_t)(found - map->entries);
    map->entries[hole].key = 0;
    map->count--;
    for (size_t i = (hole + 1) & (map->capacity - 1); map->entries[i].key != 0;
         i = (i + 1) & (map->capacity - 1)) {
        struct cull_entry entry = map->entries[i];
        map->entries[i].key = 0;
        *find(map, entry.key) = entry;
    }
    return true;
}

static void clear(struct cull_map *map) {
    if (map->count != 0) {
        memset(map->entries, 0, map->capacity * sizeof *map->entries);
        map->count = 0;
    }
}

/* --- deciding --------------------------------------------------------------------------------- */

void cull_open(struct cull *cull, uint64_t below_ns) {
    *cull = (struct cull){.below_ns = below_ns};
}

void cull_close(struct cull *cull) {
    free(cull->ends.entries);
    free(cull->culled.entries);
    free(cull->places.entries);
    free(cull->totals);
    *cull = (struct cull){0};
}

void cull_begin(struct cull *cull) {
    clear(&cull->ends);
}

int cull_note(struct cull *cull, const struct event *event) {
    if (event->kind == EVENT_FREE && event->block.number != 0) {
        return put(&cull->ends, event->block, event->time_ns);
    }
    if (event->kind == EVENT_ALLOC && event->old.number != 0) {
        return put(&cull->ends, event->old, event->time_ns);
    }
    return 0;
}

/* A new total, at the end. */
static int start_total(struct cull *cull, const struct event *event, struct event_block place) {
    if (cull->total_count == cull->total_capacity) {
        size_t capacity = cull->total_capacity != 0 ? cull->total_capacity * 2 : 64;
        struct memtrace_culled *grown = realloc(cull->totals, capacity * sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        cull->totals = grown;
        cull->total_capacity = capacity;
    }
    cull->totals[cull->total_count] =
        (struct memtrace_culled){.context = event->context, .thread = event->block.thread};
    return put(&cull->places, place, cull->total_count++);
}

static int add_total(struct cull *cull, const struct event *event) {
    struct event_block place = {.number = event->context + UINT64_C(1),
                                .thread = event->block.thread};
    struct memtrace_culled *total;
    if (get(&cull->places, place) == NULL && start_total(cull, event, place) != 0) {
        return -1;
    }
    total = &cull->totals[get(&cull->places, place)->value];
    total->count++;
    total->bytes += event->weight != 0 ? event->weight : event->size;
    return 0;
}

/* Whether the new block of an allocation is left out: 1, 0, or -1 (out of memory). */
static int cull_new(struct cull *cull, const struct event *event) {
    const struct cull_entry *end = get(&cull->ends, event->block);
    if (end == NULL || end->value < event->time_ns ||
        end->value - event->time_ns >= cull->below_ns) {
        return 0;
    }
    return put(&cull->culled, event->block, 0) == 0 && add_total(cull, event) == 0 ? 1 : -1;
}

int cull_decide(struct cull *cull, struct event *event) {
    int culled;
    if (event->kind == EVENT_FREE) {
        return take(&cull->culled, event->block) ? 0 : 1;
    }
    if (event->kind != EVENT_ALLOC) {
        return 1;
    }
    if (event->old.number != 0 && take(&cull->culled, event->old)) {
        event->old = (struct event_block){0};
    }
    culled = cull_new(cull, event);
    if (culled <= 0) {
        return culled == 0 ? 1 : -1;
    }
    if (event->old.number == 0) {
        return 0;
    }
    *event = (struct event){.kind = EVENT_FREE, .time_ns = event->time_ns, .block = event->old};
    return 1;
}

int cull_write(struct cull *cull, struct recordfile *file, uint64_t time_ns, struct error *error) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_CULLED,
                                          .first_ns = time_ns,
                                          .last_ns = time_ns,
                                          .items = (uint32_t)cull->total_count};
    size_t size = cull->total_count * sizeof *cull->totals;
    if (cull->total_count == 0) {
        return 0;
    }
    cull->total_count = 0;
    clear(&cull->places);
    return recordfile_append(file, &block, cull->totals, size, error);
}
