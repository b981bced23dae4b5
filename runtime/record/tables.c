/* SPDX-License-Identifier: MIT */
/* tables.c: the region's pools and its timeline. See region.h. */
#define _GNU_SOURCE
#include "runtime/record/region.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"
#include "runtime/record/proc.h"

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

/* Most programs name none. */
static int have_pools(struct region *region) {
    return space_leaf(region->space, &region->pools, MEMTRACE_SEGMENT_POOLS, 0,
                      sizeof *region->pools, REGION_POOL_LIMIT + 1) != NULL;
}

int region_pool(struct region *region, const char *name) {
    struct memtrace_header *header = region->space->header;
    int pool = find_pool(region, name);
    if (pool >= 0 || region->space->is_private || !sys_take(&region->lock)) {
        return pool;
    }
    pool = find_pool(region, name);
    if (pool < 0 && header->pool_count < REGION_POOL_LIMIT && have_pools(region)) {
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
    timeline->point[timeline->count].resident_bytes = proc_resident_bytes();
    STORE_RELEASE(&timeline->count, timeline->count + 1);
    trylock_release(&region->lock);
}
