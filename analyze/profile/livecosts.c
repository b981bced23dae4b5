/* SPDX-License-Identifier: MIT */
/*
 * livecosts.c: see livecosts.h. The order of reading is that of load.c: of each context the frees
 * of all columns, then its allocations, at last the nodes.
 */
#include "analyze/profile/livecosts.h"

#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>

/* Room by node and an eighth more; what is new is zeros. Programs have millions of nodes: it does
 * not double, as other arrays do, but is one item that is as large as all. */
static void livecosts_reserve(void *items, size_t *room, size_t wanted, size_t item_size) {
    enum { SPARE = 8 };
    size_t more = wanted + wanted / SPARE;
    size_t none = 0;
    char *all;
    if (wanted > *room) {
        job_reserve(items, &none, 1, more * item_size);
        memcpy(&all, items, sizeof all);
        memset(all + *room * item_size, 0, (more - *room) * item_size);
        *room = more;
    }
}

static void reserve_nodes(struct livecosts *costs, size_t count) {
    livecosts_reserve(&costs->nodes, &costs->node_room, count, sizeof *costs->nodes);
    livecosts_reserve(&costs->places, &costs->place_room, count, sizeof *costs->places);
    livecosts_reserve(&costs->whole, &costs->whole_room, count / MEMTRACE_LEAF_ITEMS + 1, 1);
    costs->node_count = count > costs->node_count ? count : costs->node_count;
}

/* The context of this id, made if it is not there. */
static struct livecosts_context *livecosts_context(struct livecosts *costs, uint32_t id) {
    if (costs->places[id] == 0) {
        job_grow(&costs->contexts, &costs->room, costs->count, sizeof *costs->contexts);
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

static uint64_t left_of(uint64_t came, uint64_t went) {
    return came > went ? came - went : 0;
}

static void load_counts(struct livecosts *costs, const struct profile *profile) {
    uint32_t epoch = profile_load_u32(&profile_header(profile)->peak_epoch);
    struct cells cells;
    cells_gather(&cells, profile);
    cells.only = costs->only;
    for (struct cells_context at = {0}; cells_next(&cells, costs->node_count, &at);) {
        struct livecosts_context *context;
        struct sum sum = {0};
        cells_sum(&cells, &at, epoch, &sum);
        if ((sum.alloc_count | sum.free_count | sum.alloc_bytes) == 0) {
            continue;
        }
        context = livecosts_context(costs, at.id);
        context->columns = cells_allocating(&cells, &at, LIVECOSTS_OTHERS);
        set_counts(context, (struct livecosts_counts){
                                .live_bytes = left_of(sum.alloc_bytes, sum.free_bytes),
                                .live_blocks = left_of(sum.alloc_count, sum.free_count),
                                .maximum_bytes = sum.peak_bytes <= INT64_MAX ? sum.peak_bytes : 0,
                                .total_bytes = sum.alloc_bytes,
                                .allocations = sum.alloc_count,
                                .temporary = sum.temporary,
                            });
    }
    cells_release(&cells);
}

/* ---- Lifetimes ---- */

struct livecosts_lifetimes {
    const struct livecosts *costs;
    const struct profile *profile;
    livecosts_take_lifetimes *take;
    void *context;
};

static void livecosts_add_lifetimes(void *what) {
    const struct livecosts_lifetimes *wanted = what;
    const struct livecosts *costs = wanted->costs;
    struct cells cells;
    cells_gather(&cells, wanted->profile);
    cells.only = costs->only;
    for (struct cells_context at = {0}; cells_next(&cells, costs->node_count, &at);) {
        uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS] = {0};
        if (costs->places[at.id] != 0 && cells_sum_lifetimes(&cells, &at, buckets)) {
            wanted->take(wanted->context, costs->places[at.id] - 1, buckets);
        }
    }
}

int livecosts_lifetimes(const struct livecosts *costs, const struct profile *profile,
                        livecosts_take_lifetimes *take, void *context) {
    struct livecosts_lifetimes wanted = {costs, profile, take, context};
    return job_run(livecosts_add_lifetimes, &wanted, NULL, NULL);
}

/* ---- Nodes ---- */

static void load_nodes(struct livecosts *costs, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (profile_is_tree(segment) && segment->index < costs->whole_room &&
            costs->whole[segment->index] == 0) {
            uint32_t impossible = 0;
            costs->whole[segment->index] =
                cells_load_nodes(profile, segment, costs->nodes, costs->node_count, &impossible);
        }
    }
}

static void livecosts_finish(struct livecosts *costs) {
    struct livecosts_counts *totals = &costs->totals;
    *totals = (struct livecosts_counts){0};
    for (size_t i = 0; i < costs->count; i++) {
        struct livecosts_context *context = &costs->contexts[i];
        const struct model_node *node = &costs->nodes[context->id];
        if (context->path == 0 && node->frame != 0) { /* its node came with this look */
            context->class = contexts_class(node->frame);
            context->path = node->frame < MEMTRACE_FRAME_CLASSES ? node->parent : context->id;
        }
        if (context->class != MODEL_HEAP) {
            continue;
        }
        if (node->frame == MEMTRACE_FRAME_BEFORE) { /* nobody saw it allocated */
            context->now.live_blocks = context->now.total_bytes = context->now.allocations = 0;
            context->total_before = context->allocations_before = 0;
        }
        totals->live_bytes += context->now.live_bytes;
        totals->live_blocks += context->now.live_blocks;
        totals->maximum_bytes += context->now.maximum_bytes;
        totals->total_bytes += context->now.total_bytes;
        totals->allocations += context->now.allocations;
        totals->temporary += context->now.temporary;
    }
}

struct livecosts_looking {
    struct livecosts *costs;
    const struct profile *profile;
    const struct model *model; /* in place of a profile */
};

static void livecosts_look_in_job(void *what) {
    struct livecosts_looking *looking = what;
    reserve_nodes(looking->costs, cells_count_nodes(looking->profile));
    load_counts(looking->costs, looking->profile);
    load_nodes(looking->costs, looking->profile);
    livecosts_finish(looking->costs);
}

static void livecosts_take_in_job(void *what) {
    struct livecosts_looking *looking = what;
    struct livecosts *costs = looking->costs;
    const struct model *model = looking->model;
    reserve_nodes(costs, model->node_count);
    memcpy(costs->nodes, model->nodes, model->node_count * sizeof *costs->nodes);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *from = &model->contexts[i];
        set_counts(livecosts_context(costs, from->id),
                   (struct livecosts_counts){.live_bytes = from->live_bytes,
                                             .live_blocks = from->live_blocks,
                                             .maximum_bytes = from->peak_bytes,
                                             .total_bytes = from->total_bytes,
                                             .allocations = from->allocations,
                                             .temporary = from->temporary});
    }
    livecosts_finish(costs);
}

static int livecosts_run(void (*work)(void *what), struct livecosts_looking looking) {
    int result = job_run(work, &looking, &looking.costs->memory, NULL);
    if (result != 0) { /* arrays that were begun in the job that failed are gone */
        livecosts_free(looking.costs);
    }
    return result;
}

int livecosts_look(struct livecosts *costs, const struct profile *profile) {
    return livecosts_run(livecosts_look_in_job,
                         (struct livecosts_looking){.costs = costs, .profile = profile});
}

int livecosts_take(struct livecosts *costs, const struct model *model) {
    return livecosts_run(livecosts_take_in_job,
                         (struct livecosts_looking){.costs = costs, .model = model});
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
    job_free(&costs->memory);
    *costs = (struct livecosts){0};
}
