/* SPDX-License-Identifier: MIT */
/* cells.c: see cells.h. */
#include "analyze/profile/cells.h"

#include <stdlib.h>

bool cells_node_id(const struct profile_segment *segment, uint32_t place, uint32_t *id) {
    uint64_t wide = (uint64_t)segment->index * MEMTRACE_LEAF_ITEMS + place;
    *id = (uint32_t)wide;
    return place < MEMTRACE_LEAF_ITEMS && wide != 0 && wide < 1u << MEMTRACE_CONTEXT_BITS;
}

size_t cells_count_nodes(const struct profile *profile) {
    size_t count = 1;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        uint64_t places =
            segment->item_count < MEMTRACE_LEAF_ITEMS ? segment->item_count : MEMTRACE_LEAF_ITEMS;
        uint64_t end = segment->kind == MEMTRACE_SEGMENT_CELLS
                           ? ((uint64_t)segment->index + 1) * MEMTRACE_GROUP_ITEMS
                           : (uint64_t)segment->index * MEMTRACE_LEAF_ITEMS + places;
        if ((profile_is_tree(segment) || segment->kind == MEMTRACE_SEGMENT_LEDGER ||
             segment->kind == MEMTRACE_SEGMENT_CELLS) &&
            end <= 1u << MEMTRACE_CONTEXT_BITS && end > count) {
            count = end;
        }
    }
    return count;
}

/* How many groups of cells a segment has: struct memtrace_cell. */
static uint32_t groups_in(const struct profile_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_LEDGER  ? MEMTRACE_LEAF_ITEMS / MEMTRACE_GROUP_ITEMS
           : segment->kind == MEMTRACE_SEGMENT_CELLS ? 1
                                                     : 0;
}

static int by_index(const void *left, const void *right) {
    const struct cells_group *a = left;
    const struct cells_group *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

static int index_lifetimes(struct cells *cells) {
    const struct profile *profile = cells->profile;
    size_t limit = profile->segment_count + 1; /* leaves are given out in order */
    cells->lifetimes = calloc(limit, sizeof(void *));
    if (cells->lifetimes == NULL) {
        return -1;
    }
    cells->lifetime_leaves = limit;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_LIFETIMES && segment->index < limit) {
            cells->lifetimes[segment->index] = segment;
        }
    }
    return 0;
}

int cells_gather(struct cells *cells, const struct profile *profile) {
    size_t most = 1;
    for (size_t i = 0; i < profile->segment_count; i++) {
        most += groups_in(&profile->segments[i]);
    }
    *cells = (struct cells){.profile = profile, .groups = calloc(most, sizeof *cells->groups)};
    if (cells->groups == NULL || index_lifetimes(cells) != 0) {
        cells_free(cells);
        return -1;
    }
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        uint32_t count = groups_in(segment);
        for (uint32_t j = 0; j < count; j++) {
            cells->groups[cells->count++] = (struct cells_group){
                .segment = segment,
                .index = (uint64_t)segment->index * count + j,
                .place = count == 1 ? MEMTRACE_GROUP_FIRST : j * MEMTRACE_GROUP_ITEMS};
        }
    }
    qsort(cells->groups, cells->count, sizeof *cells->groups, by_index);
    return 0;
}

void cells_free(struct cells *cells) {
    free(cells->groups);
    free(cells->lifetimes);
    *cells = (struct cells){0};
}

size_t cells_columns(const struct cells *cells, size_t first) {
    size_t end = first + 1;
    while (end < cells->count && cells->groups[end].index == cells->groups[first].index) {
        end++;
    }
    return end - first;
}

/* The counts are read first: if the cell has no saved value after that, they are from before. */
uint64_t cells_peak(const struct memtrace_cell *cell, uint32_t epoch) {
    uint64_t freed = profile_load_u64(&cell->free_bytes);
    uint64_t held = profile_load_u64(&cell->alloc_bytes) - freed;
    if (epoch % 2 == 0 && profile_load_u32(&cell->peak_epoch) == epoch) {
        held = (uint64_t)profile_load_i64(&cell->saved_live);
    }
    return held;
}

/* ---- Lifetimes ---- */

static const struct memtrace_lifetimes *lifetimes_record(const struct cells *cells, uint32_t id) {
    uint32_t leaf = id / MEMTRACE_LEAF_ITEMS;
    if (leaf >= cells->lifetime_leaves || cells->lifetimes[leaf] == NULL) {
        return NULL;
    }
    return profile_item(cells->profile, cells->lifetimes[leaf], id % MEMTRACE_LEAF_ITEMS);
}

bool cells_lifetimes(const struct cells *cells, const struct memtrace_cell *cell,
                     uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]) {
    uint32_t lifetimes = profile_load_u32(&cell->lifetimes);
    uint64_t frees = profile_load_u64(&cell->free_count);
    uint64_t counted = 0;
    if (lifetimes & MEMTRACE_LIFETIME_SINGLE) {
        buckets[lifetimes % MEMTRACE_LIFETIME_BUCKETS]++;
    } else if (lifetimes & MEMTRACE_LIFETIME_RECORD) {
        const struct memtrace_lifetimes *record =
            lifetimes_record(cells, lifetimes & MEMTRACE_LIFETIME_RECORD);
        if (record == NULL) {
            return false;
        }
        for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            buckets[i] = profile_load_u32(&record->bucket[i]);
        }
    }
    if (lifetimes & MEMTRACE_LIFETIME_REST) {
        for (size_t i = 1; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            counted += buckets[i];
        }
        buckets[0] = frees > counted ? frees - counted : 0;
    }
    return lifetimes != 0 && frees != 0;
}
