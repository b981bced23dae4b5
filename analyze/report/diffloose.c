/* SPDX-License-Identifier: MIT */
/* diffloose.c: see diffloose.h. */
#include "analyze/report/diffloose.h"

#include "analyze/report/diffmatch.h"

#include <stdlib.h>

enum { MOST_PAIRS = 1 << 20 }; /* that are looked at in one function */

int diffloose_add(struct diffloose *loose, uint32_t leaf) {
    if (loose->count == loose->capacity) {
        size_t capacity = loose->capacity != 0 ? loose->capacity * 2 : 64;
        uint32_t *leaves = realloc(loose->leaves, capacity * sizeof *leaves);
        if (leaves == NULL) {
            return -1;
        }
        loose->leaves = leaves;
        loose->capacity = capacity;
    }
    loose->leaves[loose->count++] = leaf;
    return 0;
}

void diffloose_free(struct diffloose *loose) {
    free(loose->leaves);
    *loose = (struct diffloose){0};
}

/* The function that allocates; of flat trees, whose leaves hang at the root, the root. */
static const struct difftree_node *innermost(const struct difftree *tree, uint32_t leaf) {
    return &tree->nodes[tree->nodes[leaf].parent];
}

static int by_function(const void *left, const void *right, void *context) {
    const struct difftree *tree = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint32_t function_a = innermost(tree, a)->function;
    uint32_t function_b = innermost(tree, b)->function;
    if (function_a != function_b) {
        return function_a < function_b ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static size_t length_of(const struct difftree *tree, uint32_t leaf) {
    size_t length = 0;
    for (uint32_t at = leaf; at != DIFFTREE_ROOT; at = tree->nodes[at].parent) {
        length++;
    }
    return length;
}

/* Whether all functions of the short path are in the long one, in their order, and both begin
 * alike. */
static bool is_part(const struct difftree *short_tree, uint32_t short_leaf,
                    const struct difftree *long_tree, uint32_t long_leaf) {
    uint32_t here = short_leaf;
    uint32_t first[2] = {0, 0};
    for (uint32_t at = long_leaf; at != DIFFTREE_ROOT; at = long_tree->nodes[at].parent) {
        first[1] = long_tree->nodes[at].function;
        if (here != DIFFTREE_ROOT && short_tree->nodes[here].function == first[1]) {
            first[0] = first[1];
            here = short_tree->nodes[here].parent;
        } else {
            first[0] = 0;
        }
    }
    return here == DIFFTREE_ROOT && first[0] == first[1];
}

/* How far apart in length two paths are that may be one; SIZE_MAX: they are not. */
static size_t distance(const struct difftree trees[2], uint32_t left, uint32_t right) {
    const struct difftree_node *functions[2] = {innermost(&trees[0], left),
                                                innermost(&trees[1], right)};
    size_t lengths[2] = {length_of(&trees[0], left), length_of(&trees[1], right)};
    bool same_build = functions[0]->build != 0 && functions[0]->build == functions[1]->build;
    if (same_build || lengths[0] == lengths[1]) { /* nothing is lacking there */
        return SIZE_MAX;
    }
    if (lengths[0] < lengths[1]) {
        return is_part(&trees[0], left, &trees[1], right) ? lengths[1] - lengths[0] : SIZE_MAX;
    }
    return is_part(&trees[1], right, &trees[0], left) ? lengths[0] - lengths[1] : SIZE_MAX;
}

/* Leaves of one function, [start, end) in their list. */
struct group {
    size_t start;
    size_t end;
};

static struct group next_group(const struct difftree *tree, const struct diffloose *loose,
                               size_t start, uint32_t function) {
    struct group group = {start, start};
    while (group.end < loose->count &&
           innermost(tree, loose->leaves[group.end])->function == function) {
        group.end++;
    }
    return group;
}

/* The nearest that is still free, whose place is taken from the list. */
static uint32_t take_nearest(const struct difftree trees[2], uint32_t left, struct diffloose *right,
                             struct group group) {
    size_t best = SIZE_MAX;
    size_t place = SIZE_MAX;
    uint32_t leaf;
    for (size_t i = group.start; i < group.end; i++) {
        size_t apart =
            right->leaves[i] != DIFFMATCH_NONE ? distance(trees, left, right->leaves[i]) : SIZE_MAX;
        if (apart < best) {
            best = apart;
            place = i;
        }
    }
    if (place == SIZE_MAX) {
        return DIFFMATCH_NONE;
    }
    leaf = right->leaves[place];
    right->leaves[place] = DIFFMATCH_NONE;
    return leaf;
}

static int match_group(const struct difftree trees[2], struct diffloose loose[2],
                       const struct group groups[2],
                       int (*pair)(void *context, uint32_t left, uint32_t right), void *context) {
    size_t many = groups[1].end - groups[1].start;
    bool is_large = many != 0 && groups[0].end - groups[0].start > MOST_PAIRS / many;
    int result = 0;
    for (size_t i = groups[0].start; result == 0 && i < groups[0].end; i++) {
        uint32_t left = loose[0].leaves[i];
        uint32_t right =
            is_large ? DIFFMATCH_NONE : take_nearest(trees, left, &loose[1], groups[1]);
        result = pair(context, left, right);
    }
    for (size_t i = groups[1].start; result == 0 && i < groups[1].end; i++) {
        if (loose[1].leaves[i] != DIFFMATCH_NONE) {
            result = pair(context, DIFFMATCH_NONE, loose[1].leaves[i]);
        }
    }
    return result;
}

int diffloose_match(const struct difftree trees[2], struct diffloose loose[2],
                    int (*pair)(void *context, uint32_t left, uint32_t right), void *context) {
    size_t at[2] = {0, 0};
    int result = 0;
    for (size_t side = 0; side < 2; side++) {
        if (loose[side].count != 0) {
            qsort_r(loose[side].leaves, loose[side].count, sizeof *loose[side].leaves, by_function,
                    (void *)&trees[side]);
        }
    }
    while (result == 0 && (at[0] < loose[0].count || at[1] < loose[1].count)) {
        struct group groups[2];
        uint32_t least = UINT32_MAX;
        for (size_t side = 0; side < 2; side++) {
            if (at[side] < loose[side].count) {
                uint32_t leaf = loose[side].leaves[at[side]];
                uint32_t function = innermost(&trees[side], leaf)->function;
                least = function < least ? function : least;
            }
        }
        for (size_t side = 0; side < 2; side++) {
            groups[side] = next_group(&trees[side], &loose[side], at[side], least);
            at[side] = groups[side].end;
        }
        result = match_group(trees, loose, groups, pair, context);
    }
    return result;
}
