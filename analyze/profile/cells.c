/* SPDX-License-Identifier: MIT */
/* cells.c: see cells.h. */
#include "analyze/profile/cells.h"

#include "analyze/base/array.h"

#include <stdlib.h>

bool cells_node_id(const struct profile_segment *segment, uint32_t place, uint32_t *id) {
    uint64_t wide = (uint64_t)segment->index * MEMTRACE_LEAF_ITEMS + place;
    *id = (uint32_t)wide;
    return place < MEMTRACE_LEAF_ITEMS && wide != 0 && wide < 1u << MEMTRACE_CONTEXT_BITS;
}

bool cells_load_nodes(const struct profile *profile, const struct profile_segment *segment,
                      struct model_node *nodes, size_t count, uint32_t *impossible) {
    bool is_whole = segment->item_count == segment->leaf_items;
    for (uint32_t place = segment->item_count; place-- > 0;) {
        struct memtrace_node node;
        uint32_t id;
        if (!cells_node_id(segment, place, &id) || id >= count ||
            !profile_node(profile, segment, place, &node)) {
            continue;
        }
        is_whole &= node.frame != 0;
        nodes[id].frame = node.frame;
        nodes[id].parent = node.parent < id ? node.parent : 0;
        if (node.parent >= id && *impossible == 0) {
            *impossible = id;
        }
    }
    return is_whole;
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
static uint32_t cells_groups_in(const struct profile_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_LEDGER  ? MEMTRACE_LEAF_ITEMS / MEMTRACE_GROUP_ITEMS
           : segment->kind == MEMTRACE_SEGMENT_CELLS ? 1
                                                     : 0;
}

void cells_gather(struct cells *cells, const struct profile *profile) {
    size_t limit = profile->segment_count + 1; /* leaves of lifetimes are given out in order */
    size_t most = 1;
    for (size_t i = 0; i < profile->segment_count; i++) {
        most += cells_groups_in(&profile->segments[i]);
    }
    *cells = (struct cells){.profile = profile,
                            .groups = job_array(most, sizeof *cells->groups),
                            .lifetimes = job_array(limit, sizeof(void *)),
                            .lifetime_leaves = limit};
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        uint32_t count = cells_groups_in(segment);
        for (uint32_t j = 0; j < count; j++) {
            cells->groups[cells->count++] = (struct cells_group){
                .segment = segment,
                .index = (uint64_t)segment->index * count + j,
                .place = count == 1 ? MEMTRACE_GROUP_FIRST : j * MEMTRACE_GROUP_ITEMS};
        }
        if (segment->kind == MEMTRACE_SEGMENT_LIFETIMES && segment->index < limit) {
            cells->lifetimes[segment->index] = segment;
        }
    }
    array_sort_by(cells->groups, cells->count, sizeof *cells->groups,
                  offsetof(struct cells_group, index));
}

void cells_release(struct cells *cells) {
    job_release(cells->groups);
    job_release(cells->lifetimes);
    *cells = (struct cells){0};
}

bool cells_next(const struct cells *cells, size_t node_count, struct cells_context *context) {
    uint64_t id = 0;
    while (id == 0 || id >= node_count) {
        if (context->columns == 0 || ++context->place == MEMTRACE_GROUP_ITEMS) {
            size_t end = context->first += context->columns;
            while (end < cells->count &&
                   cells->groups[end].index == cells->groups[context->first].index) {
                end++;
            }
            context->columns = end - context->first;
            context->place = 0;
        }
        if (context->columns == 0) {
            return false;
        }
        id = cells->groups[context->first].index * MEMTRACE_GROUP_ITEMS + context->place;
    }
    context->id = (uint32_t)id;
    return true;
}

/* Its cell in a column. NULL: it is not there, or of a column that is left out. */
static const struct memtrace_cell *cells_of(const struct cells *cells,
                                            const struct cells_context *context, size_t column) {
    const struct cells_group *group = &cells->groups[context->first + column];
    bool is_left_out = cells->only != 0 && group->segment->owner != cells->only - 1;
    return is_left_out
               ? NULL
               : profile_item(cells->profile, group->segment, group->place + context->place);
}

void cells_sum(const struct cells *cells, const struct cells_context *context, uint32_t epoch,
               struct sum *sum) {
    for (size_t i = 0; i < context->columns; i++) {
        const struct memtrace_cell *cell = cells_of(cells, context, i);
        if (cell != NULL) {
            sum->free_count += profile_load_u64(&cell->free_count);
            sum->free_bytes += profile_load_u64(&cell->free_bytes); /* of a mapping also a part */
        }
    }
    for (size_t i = 0; i < context->columns; i++) {
        const struct memtrace_cell *cell = cells_of(cells, context, i);
        uint64_t count = cell != NULL ? profile_load_u64(&cell->alloc_count) : 0;
        if (count != 0) {
            sum->alloc_bytes += profile_load_u64(&cell->alloc_bytes);
            sum->alloc_count += count;
            sum->temporary += profile_load_u64(&cell->temporary_count);
        }
    }
    cells_sum_peak(cells, context, epoch, sum);
}

/* The counts are read first: if the cell has no saved value after that, they are from before. */
void cells_sum_peak(const struct cells *cells, const struct cells_context *context, uint32_t epoch,
                    struct sum *sum) {
    for (size_t i = 0; i < context->columns; i++) {
        const struct memtrace_cell *cell = cells_of(cells, context, i);
        if (cell != NULL) {
            uint64_t freed = profile_load_u64(&cell->free_bytes);
            uint64_t held = profile_load_u64(&cell->alloc_bytes) - freed;
            if (epoch % 2 == 0 && profile_load_u32(&cell->peak_epoch) == epoch) {
                held = (uint64_t)profile_load_i64(&cell->saved_live);
            }
            sum->peak_bytes += held;
        }
    }
}

uint64_t cells_allocating(const struct cells *cells, const struct cells_context *context,
                          uint32_t others) {
    uint64_t bits = 0;
    for (size_t i = 0; i < context->columns; i++) {
        const struct memtrace_cell *cell = cells_of(cells, context, i);
        uint32_t column = cells->groups[context->first + i].segment->owner;
        if (cell != NULL && profile_load_u64(&cell->alloc_count) != 0) {
            bits |= UINT64_C(1) << (column < others ? column : others);
        }
    }
    return bits;
}

/* ---- Lifetimes ---- */

static const struct memtrace_lifetimes *cells_lifetimes_record(const struct cells *cells,
                                                               uint32_t id) {
    uint32_t leaf = id / MEMTRACE_LEAF_ITEMS;
    if (leaf >= cells->lifetime_leaves || cells->lifetimes[leaf] == NULL) {
        return NULL;
    }
    return profile_item(cells->profile, cells->lifetimes[leaf], id % MEMTRACE_LEAF_ITEMS);
}

/* How many of a cell's frees are in each bucket, which were 0; false: it is not known. */
static bool cells_lifetimes(const struct cells *cells, const struct memtrace_cell *cell,
                            uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]) {
    uint32_t lifetimes = profile_load_u32(&cell->lifetimes);
    uint64_t frees = profile_load_u64(&cell->free_count);
    uint64_t counted = 0;
    if (lifetimes & MEMTRACE_LIFETIME_SINGLE) {
        buckets[lifetimes % MEMTRACE_LIFETIME_BUCKETS]++;
    } else if (lifetimes & MEMTRACE_LIFETIME_RECORD) {
        const struct memtrace_lifetimes *record =
            cells_lifetimes_record(cells, lifetimes & MEMTRACE_LIFETIME_RECORD);
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

bool cells_sum_lifetimes(const struct cells *cells, const struct cells_context *context,
                         uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]) {
    bool is_known = false;
    for (size_t i = 0; i < context->columns; i++) {
        const struct memtrace_cell *cell = cells_of(cells, context, i);
        uint64_t found[MEMTRACE_LIFETIME_BUCKETS] = {0};
        if (cell != NULL && cells_lifetimes(cells, cell, found)) {
            is_known = true;
            for (size_t bucket = 0; bucket < MEMTRACE_LIFETIME_BUCKETS; bucket++) {
                buckets[bucket] += found[bucket];
            }
        }
    }
    return is_known;
}
