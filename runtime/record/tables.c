/* SPDX-License-Identifier: MIT */
/* tables.c: the region's tables: threads, whose memory they freed, pools, the timeline. See
 * region.h. */
#define _GNU_SOURCE
#include "runtime/record/region.h"

#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/record/resident.h"

enum {
    UNDER_HEADER = sizeof(struct memtrace_segment) / sizeof(struct memtrace_foreign_frees),
};

static struct memtrace_thread_record *others(struct region *region) {
    return region_thread(region, MEMTRACE_THREAD_OTHERS);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct memtrace_thread_record *region_thread(struct region *region, uint32_t id) {
    struct memtrace_thread_record *leaf =
        id < REGION_THREAD_LIMIT ? LOAD_ACQUIRE(&region->thread_leaf[id / REGION_THREADS_PER_LEAF])
                                 : NULL;
    return leaf != NULL && id % REGION_THREADS_PER_LEAF != 0 ? &leaf[id % REGION_THREADS_PER_LEAF]
                                                             : NULL;
}

static int open_thread_leaf(struct region *region, uint32_t index) {
    struct memtrace_thread_record *none = NULL;
    void *segment;
    if (LOAD_ACQUIRE(&region->thread_leaf[index]) != NULL) {
        return 0;
    }
    segment = space_segment(region->space, MEMTRACE_SEGMENT_THREADS, 0, index,
                            sizeof(struct memtrace_thread_record), REGION_THREADS_PER_LEAF);
    if (segment == NULL) {
        return -1;
    }
    space_publish(segment);
    if (!__atomic_compare_exchange_n(&region->thread_leaf[index], &none,
                                     (struct memtrace_thread_record *)segment, 0, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)) {
        ((struct memtrace_segment *)segment)->kind = 0;
    }
    return 0;
}

struct memtrace_thread_record *region_add_thread(struct region *region, uint32_t column) {
    struct memtrace_header *header = region->space->header;
    struct memtrace_thread_record *record;
    uint32_t id;
    do {
        id = LOAD_RELAXED(&header->thread_count) < REGION_THREAD_LIMIT
                 ? __atomic_fetch_add(&header->thread_count, 1, __ATOMIC_RELAXED)
                 : REGION_THREAD_LIMIT;
    } while (id % REGION_THREADS_PER_LEAF == 0); /* the place under a segment's header */
    if (id >= REGION_THREAD_LIMIT || open_thread_leaf(region, id / REGION_THREADS_PER_LEAF) != 0) {
        space_lost(region->space, MEMTRACE_LOST_THREADS, 1);
        return others(region);
    }
    record = region_thread(region, id);
    record->id = id;
    record->tid = sys_gettid();
    record->column = column;
    record->start_ns = sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns;
    STORE_RELEASE(&record->state, MEMTRACE_THREAD_ALIVE);
    return record;
}

void region_note_foreign_free(struct region *region, struct memtrace_foreign_frees **leaves,
                              uint32_t thread, uint32_t owner, uint64_t size, uint64_t count) {
    uint32_t index = owner / REGION_FREES_PER_LEAF;
    uint32_t place = owner % REGION_FREES_PER_LEAF;
    if (leaves[index] == NULL) {
        void *segment = space_segment(region->space, MEMTRACE_SEGMENT_FREES, thread, index,
                                      sizeof(struct memtrace_foreign_frees),
                                      REGION_FREES_PER_LEAF + UNDER_HEADER);
        if (segment == NULL) {
            return;
        }
        space_publish(segment);
        leaves[index] = segment;
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

/* --- pools and the timeline ------------------------------------------------------------------- */

static int same_name(const char *kept, const char *name) {
    size_t i = 0;
    while (i < sizeof(struct memtrace_pool) - 1 && kept[i] != '\0' && kept[i] == name[i]) {
        i++;
    }
    return kept[i] == name[i] || i == sizeof(struct memtrace_pool) - 1;
}

static int find_pool(const struct region *region, const char *name) {
    uint32_t count = LOAD_ACQUIRE(&region->space->header->pool_count);
    for (uint32_t i = 1; i <= count; i++) {
        if (same_name(region->pools[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

int region_pool(struct region *region, const char *name) {
    struct memtrace_header *header = region->space->header;
    int pool = find_pool(region, name);
    if (pool >= 0 || region->space->is_private || !sys_take(&region->lock)) {
        return pool;
    }
    pool = find_pool(region, name);
    if (pool < 0 && header->pool_count < REGION_POOL_LIMIT) {
        pool = (int)header->pool_count + 1;
        text_copy(region->pools[pool].name, sizeof region->pools[pool].name, name);
        STORE_RELEASE(&header->pool_count, (uint32_t)pool);
    }
    trylock_release(&region->lock);
    return pool;
}

static void thin(struct memtrace_timeline *timeline) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i < timeline->count; i += 2) {
        timeline->point[kept++] = timeline->point[i];
    }
    STORE_RELEASE(&timeline->count, kept);
    timeline->churn_step_bytes *= 2;
}

void region_sample(struct region *region, const struct memtrace_point *sample) {
    struct memtrace_timeline *timeline = region->timeline;
    if (!trylock_take(&region->lock)) {
        return;
    }
    if (timeline->count == MEMTRACE_TIMELINE_POINTS) {
        thin(timeline);
    }
    timeline->point[timeline->count] = *sample;
    timeline->point[timeline->count].resident_bytes = resident_now();
    STORE_RELEASE(&timeline->count, timeline->count + 1);
    trylock_release(&region->lock);
}

void region_totals(struct region *region, struct memtrace_point *sum) {
    uint32_t count = LOAD_RELAXED(&region->space->header->thread_count);
    uint64_t freed = 0;
    *sum = (struct memtrace_point){0};
    for (uint32_t id = 1; id < count && id < REGION_THREAD_LIMIT; id++) {
        const struct memtrace_thread_record *record = region_thread(region, id);
        if (record != NULL) {
            freed += LOAD_RELAXED(&record->free_bytes);
            sum->alloc_bytes += LOAD_RELAXED(&record->alloc_bytes);
            sum->alloc_count += LOAD_RELAXED(&record->alloc_count);
        }
    }
    sum->live_bytes = sum->alloc_bytes > freed ? sum->alloc_bytes - freed : 0;
}
