/* SPDX-License-Identifier: MIT */
/*
 * livecosts.c: see livecosts.h. The order of reading is that of load.c: of each context the frees
 * of all columns, then its allocations, at last the nodes.
 */
#include "analyze/profile/livecosts.h"

#include "analyze/base/array.h"
#include "analyze/profile/cells.h"
#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>

enum { SPARE = 8 };

/* Room by node and an eighth more; what is new is zeros. Programs have millions of nodes: it does
 * not double, as other arrays do. 0, or -1: out of memory. */
static int reserve(void *items, size_t *room, size_t wanted, size_t item_size) {
    size_t more = wanted + wanted / SPARE;
    void *old;
    char *all;
    if (wanted <= *room) {
        return 0;
    }
    memcpy(&old, items, sizeof old);
    all = reallocarray(old, more, item_size);
    if (all == NULL) {
        return -1;
    }
    memset(all + *room * item_size, 0, (more - *room) * item_size);
    memcpy(items, &all, sizeof all);
    *room = more;
    return 0;
}

static int reserve_nodes(struct livecosts *costs, size_t count) {
    if (reserve(&costs->nodes, &costs->node_room, count, sizeof *costs->nodes) != 0 ||
        reserve(&costs->places, &costs->place_room, count, sizeof *costs->places) != 0 ||
        reserve(&costs->whole, &costs->whole_room, count / MEMTRACE_LEAF_ITEMS + 1, 1) != 0) {
        return -1;
    }
    costs->node_count = count > costs->node_count ? count : costs->node_count;
    return 0;
}

/* The context of this id, made if it is not there. NULL: out of memory. */
static struct livecosts_context *context_of(struct livecosts *costs, uint32_t id) {
    if (costs->places[id] == 0) {
        if (array_grow(&costs->contexts, &costs->room, costs->count, sizeof *costs->contexts) !=
            0) {
            return NULL;
        }
        costs->contexts[costs->count++] = (struct livecosts_context){.id = id};
        costs->places[id] = (uint32_t)costs->count;
    }
    return &costs->contexts[costs->places[id] - 1];
}

static void set_counts(struct livecosts_context *context, struct livecosts_counts counts) {
    context->total_before = context->now.total_bytes;
    context->allocations_before = context->now.allocations;
    context->now = counts;
}

/* ---- Cells ---- */

static bool is_used(const struct sum *sum) {
    return (sum->alloc_count | sum->free_count | sum->alloc_bytes) != 0;
}

static uint64_t left_of(uint64_t came, uint64_t went) {
    return came > went ? came - went : 0;
}

static struct livecosts_counts counts_of(const struct sum *sum) {
    return (struct livecosts_counts){
        .live_bytes = left_of(sum->alloc_bytes, sum->free_bytes),
        .live_blocks = left_of(sum->alloc_count, sum->free_count),
        .maximum_bytes = sum->peak_bytes <= INT64_MAX ? sum->peak_bytes : 0,
        .total_bytes = sum->alloc_bytes,
        .allocations = sum->alloc_count,
        .temporary = sum->temporary,
    };
}

/* NULL: it is not there, or of a thread that is left out. */
static const struct memtrace_cell *cell_in(const struct cells *cells, uint32_t only, size_t group,
                                           uint32_t place) {
    bool is_left_out = only != 0 && cells->groups[group].segment->owner != only - 1;
    return is_left_out ? NULL : cells_of(cells, group, place);
}

static uint64_t bit_of(uint32_t column) {
    return UINT64_C(1) << (column < LIVECOSTS_OTHERS ? column : LIVECOSTS_OTHERS);
}

/* A context's cells in all columns; *who: those that allocated in it. */
static struct sum sum_columns(const struct cells *cells, uint32_t only, size_t first,
                              size_t columns, uint32_t place, uint32_t epoch, uint64_t *who) {
    struct sum sum = {0};
    for (size_t i = first; i < first + columns; i++) {
        const struct memtrace_cell *cell = cell_in(cells, only, i, place);
        if (cell != NULL) {
            sum.free_count += profile_load_u64(&cell->free_count);
            sum.free_bytes += profile_load_u64(&cell->free_bytes);
        }
    }
    for (size_t i = first; i < first + columns; i++) {
        const struct memtrace_cell *cell = cell_in(cells, only, i, place);
        if (cell != NULL) {
            uint64_t allocations = profile_load_u64(&cell->alloc_count);
            *who |= allocations != 0 ? bit_of(cells->groups[i].segment->owner) : 0;
            sum.alloc_count += allocations;
            sum.alloc_bytes += profile_load_u64(&cell->alloc_bytes);
            sum.temporary += profile_load_u64(&cell->temporary_count);
            sum.peak_bytes += cells_peak(cell, epoch);
        }
    }
    return sum;
}

static int load_group(struct livecosts *costs, const struct cells *cells, size_t first,
                      size_t columns, uint32_t epoch) {
    for (uint32_t place = 0; place < MEMTRACE_GROUP_ITEMS; place++) {
        uint64_t id = cells_id(cells, first, place);
        uint64_t who = 0;
        struct sum sum;
        if (id == 0 || id >= costs->node_count) {
            continue;
        }
        sum = sum_columns(cells, costs->only, first, columns, place, epoch, &who);
        if (is_used(&sum)) {
            struct livecosts_context *context = context_of(costs, (uint32_t)id);
            if (context == NULL) {
                return -1;
            }
            set_counts(context, counts_of(&sum));
            context->columns = who;
        }
    }
    return 0;
}

static int load_cells(struct livecosts *costs, const struct profile *profile) {
    uint32_t epoch = profile_load_u32(&profile_header(profile)->peak_epoch);
    struct cells cells;
    size_t columns;
    int result = cells_gather(&cells, profile);
    for (size_t first = 0; result == 0 && first < cells.count; first += columns) {
        columns = cells_columns(&cells, first);
        result = load_group(costs, &cells, first, columns, epoch);
    }
    cells_free(&cells);
    return result;
}

/* ---- Lifetimes ---- */

/* Whether any are known. */
static bool add_lifetimes(const struct cells *cells, uint32_t only, size_t group, uint32_t place,
                          uint64_t *buckets) {
    const struct memtrace_cell *cell = cell_in(cells, only, group, place);
    uint64_t found[MEMTRACE_LIFETIME_BUCKETS] = {0};
    if (cell == NULL || !cells_lifetimes(cells, cell, found)) {
        return false;
    }
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        buckets[i] += found[i];
    }
    return true;
}

int livecosts_lifetimes(const struct livecosts *costs, const struct profile *profile,
                        livecosts_take_lifetimes *take, void *context) {
    struct cells cells;
    if (cells_gather(&cells, profile) != 0) {
        return -1;
    }
    for (size_t first = 0, columns; first < cells.count; first += columns) {
        columns = cells_columns(&cells, first);
        for (uint32_t place = 0; place < MEMTRACE_GROUP_ITEMS; place++) {
            uint64_t id = cells_id(&cells, first, place);
            uint32_t known = id < costs->node_count ? costs->places[id] : 0;
            uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS] = {0};
            bool is_known = false;
            for (size_t i = 0; known != 0 && i < columns; i++) {
                is_known |= add_lifetimes(&cells, costs->only, first + i, place, buckets);
            }
            if (is_known) {
                take(context, known - 1, buckets);
            }
        }
    }
    cells_free(&cells);
    return 0;
}

/* ---- Nodes ---- */

/* Whether each place of the leaf has a node by now, so that nothing in it changes any more. */
static bool load_leaf(struct livecosts *costs, const struct profile *profile,
                      const struct profile_segment *segment) {
    bool is_whole = segment->item_count == segment->leaf_items;
    for (uint32_t place = 0; place < segment->item_count; place++) {
        struct memtrace_node node;
        uint32_t id;
        if (!cells_node_id(segment, place, &id) || id >= costs->node_count ||
            !profile_node(profile, segment, place, &node)) {
            continue;
        }
        is_whole &= node.frame != 0;
        costs->nodes[id].frame = node.frame;
        costs->nodes[id].parent = node.parent < id ? node.parent : 0;
    }
    return is_whole;
}

static void load_nodes(struct livecosts *costs, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (profile_is_tree(segment) && segment->index < costs->whole_room &&
            costs->whole[segment->index] == 0) {
            costs->whole[segment->index] = load_leaf(costs, profile, segment);
        }
    }
}

static void classify(const struct livecosts *costs, struct livecosts_context *context) {
    uint64_t frame = costs->nodes[context->id].frame;
    context->class = contexts_class(frame);
    context->path = frame == 0                       ? 0
                    : frame < MEMTRACE_FRAME_CLASSES ? costs->nodes[context->id].parent
                                                     : context->id;
}

/* What was there before the program was attached to is held, but nobody saw it allocated. */
static void forget_allocations(struct livecosts_context *context) {
    context->now.live_blocks = context->now.total_bytes = context->now.allocations = 0;
    context->total_before = context->allocations_before = 0;
}

static void finish(struct livecosts *costs) {
    struct livecosts_counts *totals = &costs->totals;
    *totals = (struct livecosts_counts){0};
    for (size_t i = 0; i < costs->count; i++) {
        struct livecosts_context *context = &costs->contexts[i];
        if (context->path == 0) { /* its node came with this look, or it has none */
            classify(costs, context);
        }
        if (context->class != MODEL_HEAP) {
            continue;
        }
        if (costs->nodes[context->id].frame == MEMTRACE_FRAME_BEFORE) {
            forget_allocations(context);
        }
        totals->live_bytes += context->now.live_bytes;
        totals->live_blocks += context->now.live_blocks;
        totals->maximum_bytes += context->now.maximum_bytes;
        totals->total_bytes += context->now.total_bytes;
        totals->allocations += context->now.allocations;
        totals->temporary += context->now.temporary;
    }
}

int livecosts_look(struct livecosts *costs, const struct profile *profile) {
    if (reserve_nodes(costs, cells_count_nodes(profile)) != 0 || load_cells(costs, profile) != 0) {
        return -1;
    }
    load_nodes(costs, profile);
    finish(costs);
    return 0;
}

int livecosts_take(struct livecosts *costs, const struct model *model) {
    if (reserve_nodes(costs, model->node_count) != 0) {
        return -1;
    }
    memcpy(costs->nodes, model->nodes, model->node_count * sizeof *costs->nodes);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *from = &model->contexts[i];
        struct livecosts_context *context = context_of(costs, from->id);
        if (context == NULL) {
            return -1;
        }
        set_counts(context, (struct livecosts_counts){.live_bytes = from->live_bytes,
                                                      .live_blocks = from->live_blocks,
                                                      .maximum_bytes = from->peak_bytes,
                                                      .total_bytes = from->total_bytes,
                                                      .allocations = from->allocations,
                                                      .temporary = from->temporary});
    }
    finish(costs);
    return 0;
}

void livecosts_only(struct livecosts *costs, uint32_t only) {
    costs->only = only;
    for (size_t i = 0; i < costs->count; i++) {
        costs->contexts[i].now = (struct livecosts_counts){0};
    }
}

void livecosts_begin(struct livecosts *costs) {
    for (size_t i = 0; i < costs->count; i++) {
        set_counts(&costs->contexts[i], costs->contexts[i].now);
    }
    livecosts_mark(costs);
}

void livecosts_mark(struct livecosts *costs) {
    for (size_t i = 0; i < costs->count; i++) {
        costs->contexts[i].live_marked = costs->contexts[i].now.live_bytes;
    }
    costs->is_marked = true;
}

void livecosts_free(struct livecosts *costs) {
    free(costs->nodes);
    free(costs->contexts);
    free(costs->places);
    free(costs->whole);
    *costs = (struct livecosts){0};
}
