/* SPDX-License-Identifier: MIT */
/* cull.c: what lives too short to be written. See cull.h. */
#include "collect/cull.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

struct cull_entry {
    uint64_t key;
    uint64_t born_ns : 61; /* in `places`: an index */
    uint64_t has_birth : 1;
    uint64_t has_old : 1; /* a realloc made it of another block */
    uint64_t is_short : 1;
    uint64_t end : 62; /* when it was freed; or the key of the block that a realloc made of it */
    uint64_t has_end : 1;
    uint64_t is_moved : 1;
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

/* A block's entry, which is empty but for its key if it is new. NULL: out of memory. */
static struct cull_entry *put(struct cull_map *map, struct event_block block) {
    struct cull_entry *entry;
    if (map->count * 2 >= map->capacity && grow(map) != 0) {
        return NULL;
    }
    entry = find(map, key_of(block));
    if (entry->key == 0) {
        *entry = (struct cull_entry){.key = key_of(block)};
        map->count++;
    }
    return entry;
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
    free(cull->noted.entries);
    free(cull->culled.entries);
    free(cull->places.entries);
    free(cull->totals);
    *cull = (struct cull){0};
}

void cull_begin(struct cull *cull) {
    clear(&cull->noted);
}

static int note_birth(struct cull *cull, const struct event *event) {
    struct cull_entry *entry = put(&cull->noted, event->block);
    if (entry == NULL) {
        return -1;
    }
    entry->born_ns = event->time_ns;
    entry->has_birth = 1;
    entry->has_old = event->old.number != 0;
    entry->is_short = get(&cull->culled, event->old) != NULL; /* as the chain's beginning */
    return 0;
}

static int note_end(struct cull *cull, struct event_block block, uint64_t end, bool is_moved) {
    struct cull_entry *entry = put(&cull->noted, block);
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
        return note_end(cull, event->block, event->time_ns, false);
    }
    if (event->kind != EVENT_ALLOC) {
        return 0;
    }
    if (event->old.number != 0 && note_end(cull, event->old, key_of(event->block), true) != 0) {
        return -1;
    }
    return note_birth(cull, event);
}

/* The block that a realloc made of this one. NULL: none did, or its birth is not noted. */
static struct cull_entry *next_of(const struct cull *cull, const struct cull_entry *entry) {
    struct cull_entry *next = entry->is_moved ? find(&cull->noted, entry->end) : NULL;
    return next != NULL && next->key != 0 ? next : NULL;
}

/* Whether the chain that begins here ended in time, as far as is known. */
static bool ends_soon(const struct cull *cull, const struct cull_entry *first) {
    const struct cull_entry *last = first;
    while (last != NULL && last->is_moved) {
        last = next_of(cull, last);
    }
    return last != NULL && last->has_end &&
           (last->end <= first->born_ns || /* by another thread's clock, a little behind */
            last->end - first->born_ns < cull->below_ns);
}

void cull_judge(struct cull *cull) {
    for (size_t i = 0; i < cull->noted.capacity && cull->noted.count != 0; i++) {
        struct cull_entry *first = &cull->noted.entries[i];
        if (first->has_birth && !first->has_old && ends_soon(cull, first)) {
            first->is_short = 1;
        }
        for (struct cull_entry *next = first->is_short ? next_of(cull, first) : NULL;
             next != NULL && !next->is_short; next = next_of(cull, next)) {
            next->is_short = 1;
        }
    }
}

/* A new total, at the end. */
static int start_total(struct cull *cull, const struct event *event, struct event_block place) {
    struct cull_entry *entry;
    if (array_grow(&cull->totals, &cull->total_room, cull->total_count, sizeof *cull->totals) !=
        0) {
        return -1;
    }
    cull->totals[cull->total_count] =
        (struct memtrace_culled){.context = event->context, .thread = event->block.thread};
    entry = put(&cull->places, place);
    if (entry == NULL) {
        return -1;
    }
    entry->born_ns = cull->total_count++;
    return 0;
}

static int add_total(struct cull *cull, const struct event *event) {
    struct event_block place = {.number = event->context + UINT64_C(1),
                                .thread = event->block.thread};
    struct memtrace_culled *total;
    if (get(&cull->places, place) == NULL && start_total(cull, event, place) != 0) {
        return -1;
    }
    total = &cull->totals[get(&cull->places, place)->born_ns];
    total->count++;
    total->bytes += event->weight != 0 ? event->weight : event->size;
    return 0;
}

/* One end of a block: whether it is left out, 1, 0, or -1 (out of memory). */
static int leave_out(struct cull *cull, struct event_block block) {
    const struct cull_entry *entry;
    if (take(&cull->culled, block)) {
        return 1;
    }
    entry = get(&cull->noted, block);
    if (entry == NULL || !entry->is_short) {
        return 0;
    }
    return put(&cull->culled, block) != NULL ? 1 : -1;
}

/* The same for an allocation or reallocation. */
static int decide_alloc(struct cull *cull, struct event *event) {
    int old = event->old.number != 0 ? leave_out(cull, event->old) : 1;
    int new = leave_out(cull, event->block);
    if (old < 0 || new < 0 || (new == 1 && add_total(cull, event) != 0)) {
        return -1;
    }
    if (new == 1 && old == 0) {
        *event = (struct event){.kind = EVENT_FREE, .time_ns = event->time_ns, .block = event->old};
    } else if (old == 1) {
        event->old = (struct event_block){0};
    }
    return new == 1 && old == 1 ? 0 : 1;
}

int cull_decide(struct cull *cull, struct event *event) {
    int culled;
    if (event->kind == EVENT_ALLOC) {
        return decide_alloc(cull, event);
    }
    culled = event->kind == EVENT_FREE ? leave_out(cull, event->block) : 0;
    return culled < 0 ? -1 : !culled;
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
