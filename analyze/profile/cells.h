/* SPDX-License-Identifier: MIT */
/*
 * cells.h: where a profile keeps the cells of its contexts: what each column (a thread, or several)
 * counted of each context. And the ids of its nodes.
 *
 * Called by analyze/profile. Belongs to one thread at a time; valid until the profile is refreshed
 * or closed.
 *
 *     for (size_t first = 0; first < cells.count; first += columns) {
 *         columns = cells_columns(&cells, first);       // all that is counted of 64 contexts
 *         ... cells_id(&cells, first, place), cells_of(&cells, first + column, place)
 *     }
 */
#ifndef ANALYZE_PROFILE_CELLS_H
#define ANALYZE_PROFILE_CELLS_H

#include "analyze/read/profile.h"

/* Cells of 64 contexts in one column. */
struct cells_group {
    const struct profile_segment *segment;
    uint64_t index; /* of the first context: / MEMTRACE_GROUP_ITEMS */
    uint32_t place; /* of its cell in the segment */
};

struct cells {
    const struct profile *profile;
    struct cells_group *groups; /* by index: those of the same contexts in all columns together */
    size_t count;
    const struct profile_segment **lifetimes; /* by index; NULL: there is none */
    size_t lifetime_leaves;
};

/* 0, or -1: out of memory. */
int cells_gather(struct cells *cells, const struct profile *profile);
void cells_free(struct cells *cells);

/* How many groups from `first` on are of the same contexts. */
size_t cells_columns(const struct cells *cells, size_t first);
/* The context of a group's cell; it may be 0, or more than any node's. */
static inline uint64_t cells_id(const struct cells *cells, size_t group, uint32_t place) {
    return cells->groups[group].index * MEMTRACE_GROUP_ITEMS + place;
}
/* NULL: it is not there. */
static inline const struct memtrace_cell *cells_of(const struct cells *cells, size_t group,
                                                   uint32_t place) {
    const struct cells_group *at = &cells->groups[group];
    return profile_item(cells->profile, at->segment, at->place + place);
}

/* How many of a cell's frees are in each bucket, which were 0; false: it is not known. */
bool cells_lifetimes(const struct cells *cells, const struct memtrace_cell *cell,
                     uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]);
/* What the cell held when the process was last at its maximum, which was that epoch: see struct
 * memtrace_header. */
uint64_t cells_peak(const struct memtrace_cell *cell, uint32_t epoch);

/* One more than the highest id that a node or a cell may have. */
size_t cells_count_nodes(const struct profile *profile);
/* The id of a node of a segment of the tree; false: it is none. */
bool cells_node_id(const struct profile_segment *segment, uint32_t place, uint32_t *id);

#endif
