/* SPDX-License-Identifier: MIT */
/* treediff.c: see treediff.h. */
#include "analyze/report/treediff.h"

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

struct merging {
    struct treediff *diff;
    struct diff_functions *functions;
    struct numbermap children; /* by parent, function and line: the call */
    size_t cost_room;
    bool by_line;
};

/* The merged call of this frame below a merged one. */
static uint32_t treediff_child(struct merging *merging, uint32_t parent,
                               const struct names_frame *frame) {
    struct treediff *diff = merging->diff;
    struct calltree *tree = &diff->tree;
    uint32_t function = diff_function(merging->functions, frame);
    const uint64_t key[3] = {parent, function, merging->by_line ? frame->line : 0};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uint32_t at = (uint32_t)(uintptr_t)numbermap_get(&merging->children, hash);
    if (at != 0) {
        return at;
    }
    at = (uint32_t)tree->count;
    calltree_reserve(tree, 1);
    job_grow(&diff->costs, &merging->cost_room, at, sizeof *diff->costs);
    numbermap_set(&merging->children, hash, (void *)(uintptr_t)at);
    tree->calls[at] =
        (struct call){.frame = frame, .parent = parent, .next = tree->calls[parent].first_child};
    tree->calls[parent].first_child = at;
    diff->costs[at] = (struct treediff_costs){0};
    tree->count++;
    return at;
}

/* Callers come before what they call, in the one tree as in the other. */
static void treediff_add(struct merging *merging, const struct calltree *tree, size_t side) {
    uint32_t *places = job_array(tree->count, sizeof *places);
    for (size_t i = 0; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        struct treediff_costs *costs;
        if (i != 0) {
            places[i] = treediff_child(merging, places[call->parent], call->frame);
        }
        if (i != 0 && side == 1) {
            merging->diff->tree.calls[places[i]].frame = call->frame;
        }
        costs = &merging->diff->costs[places[i]];
        metric_add(&costs->cost[side], call->cost);
        costs->self[side] += call->self.main;
    }
}

struct treediff treediff_make(const struct calltree trees[2], struct diff_functions *functions,
                              bool by_line) {
    struct treediff diff = {.tree = calltree_begin()};
    struct merging merging = {.diff = &diff, .functions = functions, .by_line = by_line};
    job_grow(&diff.costs, &merging.cost_room, 0, sizeof *diff.costs);
    diff.costs[0] = (struct treediff_costs){0};
    treediff_add(&merging, &trees[0], 0);
    treediff_add(&merging, &trees[1], 1);
    for (size_t i = 0; i < diff.tree.count; i++) {
        const struct treediff_costs *costs = &diff.costs[i];
        bool is_first = costs->cost[0].main > costs->cost[1].main;
        diff.tree.calls[i].cost = costs->cost[is_first ? 0 : 1];
    }
    calltree_sort(&diff.tree);
    return diff;
}
