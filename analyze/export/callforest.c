/* SPDX-License-Identifier: MIT */
/* callforest.c: see callforest.h. */
#include "analyze/export/callforest.h"

#include "analyze/export/mergedtree.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

/* Where a call that is not there yet is put, cleared. NULL: out of memory. */
static struct callforest_call *new_call(struct callforest *forest) {
    if (forest->count == forest->capacity) {
        size_t capacity = forest->capacity != 0 ? forest->capacity * 2 : 256;
        struct callforest_call *grown = realloc(forest->calls, capacity * sizeof *grown);
        if (grown == NULL || capacity >= UINT32_MAX) {
            forest->calls = grown != NULL ? grown : forest->calls;
            return NULL;
        }
        forest->calls = grown;
        forest->capacity = capacity;
    }
    forest->calls[forest->count] = (struct callforest_call){0};
    return &forest->calls[forest->count++];
}

/* The callee of `parent` with that key, made if need be; 0: out of memory. */
static uint32_t callee(struct callforest *forest, uint32_t parent, uint64_t key,
                       const struct call *call) {
    uint64_t hash = XXH3_64bits_withSeed(&key, sizeof key, parent);
    uintptr_t found = (uintptr_t)numbermap_get(&forest->index, hash);
    struct callforest_call *made;
    if (found != 0) {
        return (uint32_t)found;
    }
    found = forest->count;
    made = new_call(forest);
    if (made == NULL || numbermap_put(&forest->index, hash, (void *)found) != 0) {
        return 0;
    }
    made->frame = call->frame;
    made->parent = parent;
    made->depth = forest->calls[parent].depth + 1;
    return (uint32_t)found;
}

/* Lays one tree over those there are. places: of the tree's calls, in the forest. */
static int lay(struct callforest *forest, const struct calltree *tree, enum metric metric,
               uint32_t *places, bool by_line) {
    for (size_t i = 0; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        if (i != 0) {
            uint64_t key = by_line ? call->frame->place_key : call->frame->function_key;
            places[i] = callee(forest, places[call->parent], key, call);
            if (places[i] == 0) {
                return -1;
            }
        }
        forest->calls[places[i]].self[metric] = call->self.main;
        forest->calls[places[i]].cost[metric] = call->cost.main;
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
    result = places != NULL ? lay(forest, &tree, metric, places, export->by_line) : -1;
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
    if (result != 0) {
        callforest_close(forest);
        return -1;
    }
    callforest_keep(forest, forest->count);
    return 0;
}

void callforest_close(struct callforest *forest) {
    free(forest->calls);
    numbermap_free(&forest->index);
    *forest = (struct callforest){0};
}

/* ---- What is kept ---- */

static bool is_dear(const struct callforest *forest, const struct callforest_call *call) {
    if (call->depth > CALLFOREST_DEPTH) {
        return false;
    }
    for (size_t i = 0; i < EXPORT_COSTS; i++) {
        if (call->cost[i] != 0 &&
            (double)call->cost[i] >= forest->least_share * (double)forest->calls[0].cost[i]) {
            return true;
        }
    }
    return false;
}

static void number_calls(struct callforest *forest) {
    forest->kept = 1;
    for (size_t i = 1; i < forest->count; i++) {
        struct callforest_call *call = &forest->calls[i];
        call->number = is_dear(forest, call) ? (uint32_t)forest->kept++ : CALLFOREST_OUT;
    }
}

void callforest_keep(struct callforest *forest, size_t most) {
    forest->least_share = 0;
    number_calls(forest);
    while (forest->kept > most && forest->least_share < 2) {
        forest->least_share = forest->least_share > 0 ? forest->least_share * 1.3 : 1e-7;
        number_calls(forest);
    }
}
