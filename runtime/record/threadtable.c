/* SPDX-License-Identifier: MIT */
/*
 * threadtable.c: the region's table of threads, and whose memory they freed. See region.h.
 *
 * A thread's record is given to a later thread as it is, like its column in the ledger: nothing is
 * folded or moved, so all sums are right at any moment. A thread that comes gets
 *   1. a new id, as long as there are plenty (REGION_THREADS_FRESH; a forked child's threads go on
 *      behind its parent's, and want some, too),
 *   2. else the id whose thread ended first,
 *   3. else one of the last new ids,
 *   4. else a record past the ids: it is one of the "others" that a block's record names.
 */
#define _GNU_SOURCE
#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"
#include "runtime/record/region.h"

enum {
    UNDER_HEADER = sizeof(struct memtrace_segment) / sizeof(struct memtrace_foreign_frees),
};

/* --- records ---------------------------------------------------------------------------------- */

struct memtrace_thread_record *region_thread(struct region *region, uint32_t place) {
    struct memtrace_thread_record *leaf =
        place < REGION_THREAD_PLACES
            ? LOAD_ACQUIRE(&region->thread_leaf[place / REGION_THREADS_PER_LEAF])
            : NULL;
    return leaf != NULL && place % REGION_THREADS_PER_LEAF != 0
               ? &leaf[place % REGION_THREADS_PER_LEAF]
               : NULL;
}

uint32_t region_next_thread(struct region *region, uint32_t place) {
    uint32_t ids = LOAD_RELAXED(&region->space->header->thread_count);
    uint32_t past = REGION_THREAD_LIMIT + 1 + LOAD_RELAXED(&region->past_ids);
    while (++place < past) {
        if (place >= ids && place <= REGION_THREAD_LIMIT) {
            place = REGION_THREAD_LIMIT + 1;
        }
        if (region_thread(region, place) != NULL) {
            return place;
        }
    }
    return 0;
}

static struct memtrace_thread_record *add_place(struct region *region, uint32_t place,
                                                uint32_t id) {
    uint32_t leaf = place / REGION_THREADS_PER_LEAF;
    struct memtrace_thread_record *record;
    if (space_leaf(region->space, &region->thread_leaf[leaf], MEMTRACE_SEGMENT_THREADS, leaf,
                   sizeof *record, REGION_THREADS_PER_LEAF) == NULL) {
        return NULL;
    }
    record = region_thread(region, place);
    record->place = place;
    record->id = id;
    return record;
}

/* --- coming ----------------------------------------------------------------------------------- */

/* The next place below `most` that does not lie under a segment's header; 0: none is left. */
static uint32_t next_place(uint32_t *count, uint32_t from, uint32_t most) {
    uint32_t place;
    do {
        place = LOAD_RELAXED(count) < most - from
                    ? from + __atomic_fetch_add(count, 1, __ATOMIC_RELAXED)
                    : most;
    } while (place % REGION_THREADS_PER_LEAF == 0 && place < most);
    return place < most ? place : 0;
}

static struct memtrace_thread_record *add_id(struct region *region, uint32_t most) {
    uint32_t id = next_place(&region->space->header->thread_count, 0, most);
    return id != 0 ? add_place(region, id, id) : NULL;
}

static struct memtrace_thread_record *add_past_ids(struct region *region) {
    uint32_t place = next_place(&region->past_ids, REGION_THREAD_LIMIT + 1, REGION_THREAD_PLACES);
    return place != 0 ? add_place(region, place, MEMTRACE_THREAD_OTHERS) : NULL;
}

/* The record whose thread ended first; NULL: there is none, or not now. */
static struct memtrace_thread_record *take_ended(struct region *region,
                                                 struct region_ended *ended) {
    struct memtrace_thread_record *record;
    if (LOAD_RELAXED(&ended->first) == 0 || !sys_take(&region->thread_lock)) {
        return NULL;
    }
    record = region_thread(region, ended->first);
    if (record != NULL) {
        ended->first = record->next;
        record->next = 0;
        record->earlier++;
    }
    trylock_release(&region->thread_lock);
    return record;
}

struct memtrace_thread_record *region_add_thread(struct region *region, uint32_t column) {
    const struct memtrace_header *header = region->space->header;
    struct memtrace_thread_record *record = add_id(region, REGION_THREADS_FRESH);
    if (record == NULL) {
        record = take_ended(region, &region->ended);
    }
    if (record == NULL) {
        record = add_id(region, REGION_THREAD_LIMIT);
    }
    if (record == NULL) {
        record = take_ended(region, &region->ended_past_ids);
    }
    if (record == NULL) {
        record = add_past_ids(region);
    }
    if (record == NULL) {
        space_lost(region->space, MEMTRACE_LOST_THREADS, 1);
        return NULL;
    }
    record->tid = sys_gettid();
    record->column = column;
    record->start_ns = sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns;
    record->end_ns = 0;
    record->name[0] = '\0';
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ALIVE);
    return record;
}

/* --- going ------------------------------------------------------------------------------------ */

void region_end_thread(struct region *region, struct memtrace_thread_record *record) {
    const struct memtrace_header *header = region->space->header;
    struct region_ended *ended =
        record->place <= REGION_THREAD_LIMIT ? &region->ended : &region->ended_past_ids;
    STORE_RELAXED(&record->end_ns, sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ENDED);
    if (!sys_take(&region->thread_lock)) {
        return; /* rather an idle record than a longer wait */
    }
    record->next = 0;
    if (ended->first == 0) {
        STORE_RELAXED(&ended->first, record->place);
    } else {
        region_thread(region, ended->last)->next = record->place;
    }
    ended->last = record->place;
    trylock_release(&region->thread_lock);
}

/* --- sums ------------------------------------------------------------------------------------- */

void region_totals(struct region *region, struct memtrace_point *sum) {
    uint64_t there = LOAD_RELAXED(&region->space->header->inherited_bytes);
    uint64_t freed = 0;
    uint32_t place = 0;
    *sum = (struct memtrace_point){0};
    while ((place = region_next_thread(region, place)) != 0) {
        const struct memtrace_thread_record *record = region_thread(region, place);
        freed += LOAD_RELAXED(&record->counts.free_bytes);
        sum->alloc_bytes += LOAD_RELAXED(&record->counts.alloc_bytes);
        sum->alloc_count += LOAD_RELAXED(&record->counts.alloc_count);
    }
    there += sum->alloc_bytes;
    sum->live_bytes = there > freed ? there - freed : 0;
}

/* --- whose memory they freed ------------------------------------------------------------------ */

/* The leaf of a thread that had this record before; or a new one. */
static struct memtrace_foreign_frees *
find_leaf(struct region *region, struct memtrace_thread_record *record, uint32_t index) {
    struct memtrace_segment *segment = NULL;
    for (uint32_t page = record->frees; page != 0; page = segment->previous) {
        segment = (void *)(region->space->base + (uint64_t)page * MEMTRACE_PAGE_SIZE);
        if (segment->index == index) {
            return (void *)segment;
        }
    }
    segment =
        space_segment(region->space, MEMTRACE_SEGMENT_FREES, record->id, index,
                      sizeof(struct memtrace_foreign_frees), REGION_FREES_PER_LEAF + UNDER_HEADER);
    if (segment != NULL) {
        segment->previous = record->frees;
        space_publish(segment);
        record->frees = (uint32_t)(((uint8_t *)segment - region->space->base) / MEMTRACE_PAGE_SIZE);
    }
    return (void *)segment;
}

void region_note_foreign_free(struct region *region, struct memtrace_foreign_frees **leaves,
                              struct memtrace_thread_record *record, uint32_t owner, uint64_t size,
                              uint64_t count) {
    uint32_t index = owner / REGION_FREES_PER_LEAF;
    uint32_t place = owner % REGION_FREES_PER_LEAF;
    if (leaves[index] == NULL) {
        leaves[index] = find_leaf(region, record, index);
        if (leaves[index] == NULL) {
            return;
        }
    }
    place = place < UNDER_HEADER ? REGION_FREES_PER_LEAF + place : place;
    counter_add(&leaves[index][place].bytes, size);
    counter_add(&leaves[index][place].count, count);
}

/* The leaves are found in the region itself: another thread's are not ours to look at. */
long region_visit_foreign_frees(struct region *region, uint32_t thread,
                                void (*visit)(uint32_t owner, uint64_t blocks, uint64_t bytes,
                                              void *argument),
                                void *argument) {
    uint64_t end = LOAD_ACQUIRE(&region->space->header->end);
    uint64_t at = MEMTRACE_HEADER_SIZE;
    const struct memtrace_segment *segment;
    long count = 0;
    while ((segment = space_next(region->space, &at, end)) != NULL) {
        const struct memtrace_foreign_frees *items = (const void *)segment;
        if (segment->kind != MEMTRACE_SEGMENT_FREES || segment->owner != thread) {
            continue;
        }
        for (uint32_t i = UNDER_HEADER; i < REGION_FREES_PER_LEAF + UNDER_HEADER; i++) {
            if (LOAD_RELAXED(&items[i].count) != 0) {
                visit(segment->index * REGION_FREES_PER_LEAF + i % REGION_FREES_PER_LEAF,
                      items[i].count, items[i].bytes, argument);
                count++;
            }
        }
    }
    return count;
}
