/* SPDX-License-Identifier: MIT */
/* callforest.c: see callforest.h. */
#include "analyze/export/callforest.h"

#include "analyze/base/array.h"
#include "analyze/export/mergedtree.h"

#include <math.h>
#include <stdlib.h>

/* Where a call that is not there yet is put, cleared. NULL: out of memory. */
static struct callforest_call *new_call(struct callforest *forest) {
    if (forest->count >= UINT32_MAX - 1 ||
        array_grow(&forest->calls, &forest->room, forest->count, sizeof *forest->calls) != 0) {
        return NULL;
    }
    forest->calls[forest->count] = (struct callforest_call){0};
    return &forest->calls[forest->count++];
}

/* The place of a call, made below `parent` if need be; 0: out of memory. */
static uint32_t place_of(struct callforest *forest, uint32_t parent, const struct call *call) {
    uintptr_t found = (uintptr_t)numbermap_get(&forest->index, call->id);
    struct callforest_call *made;
    if (found != 0) {
        return (uint32_t)found;
    }
    found = forest->count;
    made = new_call(forest);
    if (made == NULL || numbermap_put(&forest->index, call->id, (void *)found) != 0) {
        return 0;
    }
    made->frame = call->frame;
    made->parent = parent;
    made->depth = forest->calls[parent].depth + 1;
    return (uint32_t)found;
}

/* Lays one tree over those there are. places: of the tree's calls, in the forest. */
static int lay(struct callforest *forest, const struct calltree *tree, enum metric metric,
               uint32_t *places) {
    for (size_t i = 0; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        if (i != 0) {
            places[i] = place_of(forest, places[call->parent], call);
            if (places[i] == 0) {
                return -1;
            }
        }
        forest->calls[places[i]].self[metric] = call->self.main;
        forest->calls[places[i]].cost[metric] = call->cost.main;
        forest->calls[places[i]].self_side[metric] = call->self.side;
        forest->calls[places[i]].cost_side[metric] = call->cost.side;
        forest->calls[places[i]].recursive |= call->recursive;
    }
    return 0;
}

static int add_tree(struct callforest *forest, const struct export *export, enum metric metric,
                    struct error *error) {
    struct calltree tree;
    uint32_t *places;
    int result;
    if (mergedtree_open(&tree, export, metric, error) != 0) {
        return -1;
    }
    places = calloc(tree.count, sizeof *places);
    result = places != NULL ? lay(forest, &tree, metric, places) : -1;
    free(places);
    calltree_free(&tree);
    return result == 0 ? 0 : error_set(error, "out of memory");
}

int callforest_open(struct callforest *forest, const struct export *export, struct error *error) {
    int result;
    *forest = (struct callforest){0};
    result = new_call(forest) != NULL ? 0 : error_set(error, "out of memory");
    for (enum metric metric = 0; result == 0 && metric < EXPORT_COSTS; metric++) {
        result = add_tree(forest, export, metric, error);
    }
    if (result == 0 && callforest_keep(forest, forest->count) != 0) {
        result = error_set(error, "out of memory");
    }
    if (result != 0) {
        callforest_close(forest);
        return -1;
    }
    return 0;
}

void callforest_close(struct callforest *forest) {
    free(forest->calls);
    numbermap_free(&forest->index);
    *forest = (struct callforest){0};
}

/* ---- What is kept ---- */

struct share {
    double share; /* of the whole, in that cost where it is largest; < 0: too deep */
    uint32_t index;
};

static double share_of(const struct callforest *forest, const struct callforest_call *call) {
    double share = 0;
    for (size_t i = 0; i < EXPORT_COSTS && call->depth <= CALLFOREST_DEPTH; i++) {
        double whole = (double)forest->calls[0].cost[i];
        share = call->cost[i] != 0 ? fmax(share, (double)call->cost[i] / whole) : share;
    }
    return call->depth <= CALLFOREST_DEPTH ? share : -1;
}

/* Dearest first; of equal ones callers, which have the smaller index, before what they call. */
static int compare(const void *left, const void *right) {
    const struct share *a = left;
    const struct share *b = right;
    if (a->share != b->share) {
        return a->share > b->share ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

static void number_calls(struct callforest *forest) {
    forest->kept = 1;
    for (size_t i = 1; i < forest->count; i++) {
        struct callforest_call *call = &forest->calls[i];
        call->number = call->number != CALLFOREST_OUT ? (uint32_t)forest->kept++ : CALLFOREST_OUT;
    }
}

int callforest_keep(struct callforest *forest, size_t most) {
    struct share *shares = calloc(forest->count, sizeof *shares);
    if (shares == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < forest->count; i++) {
        shares[i] = (struct share){share_of(forest, &forest->calls[i]), i};
    }
    /* the root is left where it is: it is always kept */
    qsort(shares + 1, forest->count - 1, sizeof *shares, compare);
    forest->least_share = 0;
    for (size_t i = 1; i < forest->count; i++) {
        bool out = i >= most || shares[i].share < 0;
        forest->calls[shares[i].index].number = out ? CALLFOREST_OUT : 1;
        forest->least_share =
            out ? fmax(forest->least_share, shares[i].share) : forest->least_share;
    }
    free(shares);
    number_calls(forest);
    return 0;
}
