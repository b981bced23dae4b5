/* SPDX-License-Identifier: MIT */
/* treediff.c: see treediff.h. */
#include "analyze/report/treediff.h"

#include "analyze/base/array.h"
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

static int add_call(struct merging *merging, uint32_t parent, const struct names_frame *frame) {
    struct treediff *diff = merging->diff;
    struct calltree *tree = &diff->tree;
    if (array_grow(&tree->calls, &diff->room, tree->count, sizeof *tree->calls) != 0 ||
        array_grow(&diff->costs, &merging->cost_room, tree->count, sizeof *diff->costs) != 0) {
        return -1;
    }
    tree->calls[tree->count] = (struct call){.frame = frame, .parent = parent};
    diff->costs[tree->count] = (struct treediff_costs){0};
    if (tree->count != 0) {
        tree->calls[tree->count].next = tree->calls[parent].first_child;
        tree->calls[parent].first_child = (uint32_t)tree->count;
    }
    tree->count++;
    return 0;
}

/* The merged call of this frame below a merged one. 0: out of memory. */
static uint32_t child_of(struct merging *merging, uint32_t parent,
                         const struct names_frame *frame) {
    uint32_t function = diff_function(merging->functions, frame);
    const uint64_t key[3] = {parent, function, merging->by_line ? frame->line : 0};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uint32_t found = (uint32_t)(uintptr_t)numbermap_get(&merging->children, hash);
    uint32_t call = (uint32_t)merging->diff->tree.count;
    if (function == 0) {
        return 0;
    }
    if (found != 0) {
        return found;
    }
    return add_call(merging, parent, frame) == 0 &&
                   numbermap_put(&merging->children, hash, (void *)(uintptr_t)call) == 0
               ? call
               : 0;
}

static void add_costs(struct merging *merging, uint32_t at, const struct call *call, size_t side) {
    struct treediff_costs *costs = &merging->diff->costs[at];
    metric_add(&costs->cost[side], call->cost);
    costs->self[side] += call->self.main;
}

/* Callers come before what they call, in the one tree as in the other. */
static int add_tree(struct merging *merging, const struct calltree *tree, size_t side) {
    uint32_t *places = calloc(tree->count, sizeof *places);
    int result = places != NULL ? 0 : -1;
    if (result == 0) {
        add_costs(merging, 0, &tree->calls[0], side);
    }
    for (size_t i = 1; result == 0 && i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        places[i] = child_of(merging, places[call->parent], call->frame);
        if (places[i] == 0) {
            result = -1;
            break;
        }
        if (side == 1) {
            merging->diff->tree.calls[places[i]].frame = call->frame;
        }
        add_costs(merging, places[i], call, side);
    }
    free(places);
    return result;
}

int treediff_make(struct treediff *diff, const struct calltree trees[2],
                  struct diff_functions *functions, bool by_line) {
    struct merging merging = {.diff = diff, .functions = functions, .by_line = by_line};
    int result;
    *diff = (struct treediff){0};
    result = add_call(&merging, 0, NULL);
    for (size_t side = 0; result == 0 && side < 2; side++) {
        result = add_tree(&merging, &trees[side], side);
    }
    numbermap_free(&merging.children);
    for (size_t i = 0; i < diff->tree.count; i++) {
        const struct treediff_costs *costs = &diff->costs[i];
        bool is_first = costs->cost[0].main > costs->cost[1].main;
        diff->tree.calls[i].cost = costs->cost[is_first ? 0 : 1];
    }
    if (result == 0) {
        calltree_sort(&diff->tree);
    }
    return result;
}

void treediff_free(struct treediff *diff) {
    calltree_free(&diff->tree);
    free(diff->costs);
    *diff = (struct treediff){0};
}
