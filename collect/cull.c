/* SPDX-License-Identifier: MIT */
/* cull.c: what lives too short to be written. See cull.h. */
#include "collect/cull.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

struct cull_entry {
    uint64_t key;
    uint64_t born_ns : 61;
    uint64_t has_birth : 1;
    uint64_t has_old : 1; /* a realloc made it of another block */
    uint64_t is_short : 1;
    uint64_t end : 62; /* when it was freed; or the key of the block that a realloc made of it */
    uint64_t has_end : 1;
    uint64_t is_moved : 1;
};

/* --- the map ---------------------------------------------------------------------------------- */

/* Thread ids have 12 bits, numbers 48; 0 is no block. */
static uint64_t cull_key(struct event_block block) {
    return block.number << MEMTRACE_THREAD_BITS | block.thread;
}

static struct cull_entry *cull_map_find(const struct cull_map *map, uint64_t key) {
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    while (map->entries[i & (map->capacity - 1)].key != 0 &&
           map->entries[i & (map->capacity - 1)].key != key) {
        i++;
    }
    return &map->entries[i & (map->capacity - 1)];
}

static int cull_map_grow(struct cull_map *map) {
    struct cull_map grown = {.count = map->count,
                             .capacity = map->capacity != 0 ? map->capacity * 2 : FIRST_CAPACITY};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].key != 0) {
            *cull_map_find(&grown, map->entries[i].key) = map->entries[i];
        }
    }
    free(map->entries);
    *map = grown;
    return 0;
}

/* A block's entry, which is empty but for its key if it is new. NULL: out of memory. */
static struct cull_entry *cull_map_put(struct cull_map *map, struct event_block block) {
    struct cull_entry *entry;
    if (map->count * 2 >= map->capacity && cull_map_grow(map) != 0) {
        return NULL;
    }
    entry = cull_map_find(map, cull_key(block));
    if (entry->key == 0) {
        *entry = (struct cull_entry){.key = cull_key(block)};
        map->count++;
    }
    return entry;
}

static const struct cull_entry *cull_map_get(const struct cull_map *map, struct event_block block) {
    const struct cull_entry *entry = map->count != 0 ? cull_map_find(map, cull_key(block)) : NULL;
    return entry != NULL && entry->key != 0 ? entry : NULL;
}

/* Takes a block out, if it is there: what stands behind it moves up, so that it is still found. */
static bool cull_map_take(struct cull_map *map, struct event_block block) {
    const struct cull_entry *found = cull_map_get(map, block);
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
        *cull_map_find(map, entry.key) = entry;
    }
    return true;
}

static void cull_map_clear(struct cull_map *map) {
    if (map->count != 0) {
        memset(map->entries, 0, map->capacity * sizeof *map->entries);
        map->count = 0;
    }
}

/* --- what is left out ------------------------------------------------------------------------- */

struct memtrace_culled *cull_total(struct cull_totals *totals, uint32_t context, uint32_t thread) {
    uint64_t key = (uint64_t)context << 32 | thread;
    size_t place = (size_t)numbermap_get(&totals->places, key);
    if (place == 0) {
        if (array_grow(&totals->items, &totals->room, totals->count, sizeof *totals->items) != 0 ||
            numbermap_put(&totals->places, key, (void *)(totals->count + 1)) != 0) {
            return NULL;
        }
        totals->items[totals->count] =
            (struct memtrace_culled){.context = context, .thread = thread};
        place = ++totals->count;
    }
    return &totals->items[place - 1];
}

void cull_free_totals(struct cull_totals *totals) {
    free(totals->items);
    numbermap_free(&totals->places);
    *totals = (struct cull_totals){0};
}

bool cull_alloc(struct event *event, bool old_goes, bool block_goes) {
    if (block_goes && !old_goes) {
        *event = (struct event){.kind = EVENT_FREE, .time_ns = event->time_ns, .block = event->old};
        return true;
    }
    if (old_goes) {
        event->old = (struct event_block){0};
    }
    return !block_goes;
}

/* --- deciding --------------------------------------------------------------------------------- */

void cull_open(struct cull *cull, uint64_t below_ns) {
    *cull = (struct cull){.below_ns = below_ns};
}

void cull_close(struct cull *cull) {
    free(cull->noted.entries);
    free(cull->culled.entries);
    cull_free_totals(&cull->totals);
    *cull = (struct cull){0};
}

void cull_begin(struct cull *cull) {
    cull_map_clear(&cull->noted);
}

static int cull_note_birth(struct cull *cull, const struct event *event) {
    struct cull_entry *entry = cull_map_put(&cull->noted, event->block);
    if (entry == NULL) {
        return -1;
    }
    entry->born_ns = event->time_ns;
    entry->has_birth = 1;
    entry->has_old = event->old.number != 0;
    entry->is_short =
        cull_map_get(&cull->culled, event->old) != NULL; /* as the chain's beginning */
    return 0;
}

static int cull_note_end(struct cull *cull, struct event_block block, uint64_t end, bool is_moved) {
    struct cull_entry *entry = cull_map_put(&cull->noted, block);
    if (entry == NULL) {
        return -1;
    }
    entry->end = end;
    entry->has_end = 1;
    entry->is_moved = is_moved;
    return 0;
}

int cull_note(struct cull *cull, const struct event *event) {
    if (event->kind == EVENT_FREE && event->block.number != 0) {
        return cull_note_end(cull, event->block, event->time_ns, false);
    }
    if (event->kind != EVENT_ALLOC) {
        return 0;
    }
    if (event->old.number != 0 &&
        cull_note_end(cull, event->old, cull_key(event->block), true) != 0) {
        return -1;
    }
    return cull_note_birth(cull, event);
}

/* The block that a realloc made of this one. NULL: none did, or its birth is not noted. */
static struct cull_entry *cull_next(const struct cull *cull, const struct cull_entry *entry) {
    struct cull_entry *next = entry->is_moved ? cull_map_find(&cull->noted, entry->end) : NULL;
    return next != NULL && next->key != 0 ? next : NULL;
}

/* Whether the chain that begins here ended in time, as far as is known. */
static bool cull_ends_soon(const struct cull *cull, const struct cull_entry *first) {
    const struct cull_entry *last = first;
    while (last != NULL && last->is_moved) {
        last = cull_next(cull, last);
    }
    return last != NULL && last->has_end &&
           (last->end <= first->born_ns || /* by another thread's clock, a little behind */
            last->end - first->born_ns < cull->below_ns);
}

void cull_judge(struct cull *cull) {
    for (size_t i = 0; i < cull->noted.capacity && cull->noted.count != 0; i++) {
        struct cull_entry *first = &cull->noted.entries[i];
        if (first->has_birth && !first->has_old && cull_ends_soon(cull, first)) {
            first->is_short = 1;
        }
        for (struct cull_entry *next = first->is_short ? cull_next(cull, first) : NULL;
             next != NULL && !next->is_short; next = cull_next(cull, next)) {
            next->is_short = 1;
        }
    }
}

/* One end of a block: whether it is left out, 1, 0, or -1 (out of memory). */
static int cull_leave_out(struct cull *cull, struct event_block block) {
    const struct cull_entry *entry;
    if (cull_map_take(&cull->culled, block)) {
        return 1;
    }
    entry = cull_map_get(&cull->noted, block);
    if (entry == NULL || !entry->is_short) {
        return 0;
    }
    return cull_map_put(&cull->culled, block) != NULL ? 1 : -1;
}

int cull_decide(struct cull *cull, struct event *event) {
    struct memtrace_culled *total;
    int old;
    int culled;
    if (event->kind != EVENT_ALLOC) {
        culled = event->kind == EVENT_FREE ? cull_leave_out(cull, event->block) : 0;
        return culled < 0 ? -1 : !culled;
    }
    old = event->old.number != 0 ? cull_leave_out(cull, event->old) : 1;
    culled = cull_leave_out(cull, event->block);
    if (old < 0 || culled < 0) {
        return -1;
    }
    if (culled == 1) {
        total = cull_total(&cull->totals, event->context, event->block.thread);
        if (total == NULL) {
            return -1;
        }
        total->count++;
        total->bytes += event->weight != 0 ? event->weight : event->size;
    }
    return cull_alloc(event, old == 1, culled == 1);
}

int cull_write(struct cull *cull, struct recordfile *file, uint64_t time_ns, struct error *error) {
    struct cull_totals *totals = &cull->totals;
    size_t count = totals->count;
    if (count != 0) {
        totals->count = 0;
        numbermap_free(&totals->places);
    }
    return recordfile_append_items(file, MEMTRACE_BLOCK_CULLED, time_ns, totals->items, count,
                                   sizeof *totals->items, error);
}
