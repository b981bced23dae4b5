/* SPDX-License-Identifier: MIT */
/* diffmatch.c: see diffmatch.h. */
#include "analyze/report/diffmatch.h"

#include "analyze/base/array.h"

#include <stdlib.h>

/* ---- The lines of one function in two builds ---- */

enum { MOST_STEPS = 1 << 24 }; /* of work and of memory; beyond, lines are paired by place */

static uint64_t difference(int64_t left, int64_t right) {
    return left < right ? (uint64_t)right - (uint64_t)left : (uint64_t)left - (uint64_t)right;
}

static void pair_by_place(uint32_t *to, size_t left_count, size_t right_count) {
    for (size_t i = 0; i < left_count; i++) {
        to[i] = i < right_count ? (uint32_t)i : DIFFMATCH_NONE;
    }
}

static void pair_equal(const uint64_t *left, size_t left_count, const uint64_t *right,
                       size_t right_count, uint32_t *to) {
    size_t at = 0;
    for (size_t i = 0; i < left_count; i++) {
        while (at < right_count && right[at] < left[i]) {
            at++;
        }
        to[i] = at < right_count && right[at] == left[i] ? (uint32_t)at : DIFFMATCH_NONE;
    }
}

/* ---- With a tolerance: as many as can, then as near as can ---- */

/* The best that the first i lines of one and the first j of the other can do. */
struct best {
    uint32_t pairs;
    uint64_t distance;
};

static bool is_better(struct best a, struct best b) {
    return a.pairs > b.pairs || (a.pairs == b.pairs && a.distance < b.distance);
}

static int pair_within(const uint64_t *left, size_t left_count, const uint64_t *right,
                       size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t width = right_count + 1;
    struct best *best = calloc((left_count + 1) * width, sizeof *best);
    if (best == NULL) {
        return -1;
    }
    for (size_t i = 1; i <= left_count; i++) {
        for (size_t j = 1; j <= right_count; j++) {
            struct best *here = &best[i * width + j];
            struct best both = best[(i - 1) * width + j - 1];
            uint64_t apart = difference((int64_t)left[i - 1], (int64_t)right[j - 1]);
            both.pairs++;
            both.distance += apart;
            *here = is_better(best[(i - 1) * width + j], best[i * width + j - 1])
                        ? best[(i - 1) * width + j]
                        : best[i * width + j - 1];
            *here = apart <= tolerance && is_better(both, *here) ? both : *here;
        }
    }
    for (size_t i = left_count, j = right_count; i > 0;) {
        struct best here = best[i * width + j];
        if (!is_better(here, best[(i - 1) * width + j])) {
            to[--i] = DIFFMATCH_NONE;
        } else if (!is_better(here, best[i * width + j - 1])) {
            j--;
        } else {
            to[--i] = (uint32_t)--j;
        }
    }
    free(best);
    return 0;
}

/* ---- Without: all of the shorter list, shifted as evenly as can be ---- */

/* The cost of pairing the line at `few` with that at `many`, all before it being paired: how far
 * the first is shifted, and by how much each one's shift differs from that of the one before. */
struct shift {
    uint64_t cost;
    uint32_t before; /* the partner of the line before */
};

static int64_t shift_of(const uint64_t *few, size_t i, const uint64_t *many, size_t j) {
    return (int64_t)many[j] - (int64_t)few[i];
}

static struct shift cheapest(const struct shift *above, const uint64_t *few, size_t i,
                             const uint64_t *many, size_t j) {
    struct shift best = {UINT64_MAX, 0};
    for (size_t k = i - 1; k < j; k++) {
        uint64_t change = difference(shift_of(few, i, many, j), shift_of(few, i - 1, many, k));
        if (above[k].cost + change < best.cost) {
            best = (struct shift){above[k].cost + change, (uint32_t)k};
        }
    }
    return best;
}

/* partner[i]: the place of few[i]'s. few_count <= many_count, neither is 0. */
static int pair_evenly(const uint64_t *few, size_t few_count, const uint64_t *many,
                       size_t many_count, uint32_t *partner) {
    struct shift *table = calloc(few_count * many_count, sizeof *table);
    size_t last = few_count - 1;
    size_t best = last;
    if (table == NULL) {
        return -1;
    }
    for (size_t j = 0; j < many_count; j++) {
        table[j].cost = difference(shift_of(few, 0, many, j), 0);
    }
    for (size_t i = 1; i < few_count; i++) {
        for (size_t j = i; j < many_count; j++) {
            table[i * many_count + j] = cheapest(&table[(i - 1) * many_count], few, i, many, j);
        }
    }
    for (size_t j = last; j < many_count; j++) {
        best = table[last * many_count + j].cost < table[last * many_count + best].cost ? j : best;
    }
    for (size_t i = few_count; i-- > 0;) {
        partner[i] = (uint32_t)best;
        best = table[i * many_count + best].before;
    }
    free(table);
    return 0;
}

static int pair_any(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint32_t *to) {
    uint32_t *partner;
    if (left_count <= right_count) {
        return pair_evenly(left, left_count, right, right_count, to);
    }
    partner = calloc(right_count, sizeof *partner);
    if (partner == NULL || pair_evenly(right, right_count, left, left_count, partner) != 0) {
        free(partner);
        return -1;
    }
    for (size_t i = 0; i < left_count; i++) {
        to[i] = DIFFMATCH_NONE;
    }
    for (size_t j = 0; j < right_count; j++) {
        to[partner[j]] = (uint32_t)j;
    }
    free(partner);
    return 0;
}

int diffmatch_lines(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t few = left_count < right_count ? left_count : right_count;
    size_t many = left_count < right_count ? right_count : left_count;
    bool is_large = many != 0 && few * many > MOST_STEPS / many;
    if (tolerance == 0) {
        pair_equal(left, left_count, right, right_count, to);
        return 0;
    }
    if (tolerance != DIFFMATCH_ANY && few * many <= MOST_STEPS / 4) {
        return pair_within(left, left_count, right, right_count, tolerance, to);
    }
    if (few == many || few == 0 || is_large) {
        pair_by_place(to, left_count, right_count);
        return 0;
    }
    return pair_any(left, left_count, right, right_count, to);
}

/* ---- What is matched loosely ---- */

enum { MOST_PAIRS = 1 << 20 }; /* that are looked at in one function */

/* Leaves of one tree. All zero is empty. */
struct loose {
    uint32_t *leaves;
    size_t count;
    size_t room;
};

static int add_loose(struct loose *loose, uint32_t leaf) {
    if (array_grow(&loose->leaves, &loose->room, loose->count, sizeof *loose->leaves) != 0) {
        return -1;
    }
    loose->leaves[loose->count++] = leaf;
    return 0;
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
struct loose_group {
    size_t start;
    size_t end;
};

static struct loose_group next_group(const struct difftree *tree, const struct loose *loose,
                                     size_t start, uint32_t function) {
    struct loose_group group = {start, start};
    while (group.end < loose->count &&
           innermost(tree, loose->leaves[group.end])->function == function) {
        group.end++;
    }
    return group;
}

/* The nearest that is still free, whose place is taken from the list. */
static uint32_t take_nearest(const struct difftree trees[2], uint32_t left, struct loose *right,
                             struct loose_group group) {
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

static int match_group(const struct difftree trees[2], struct loose loose[2],
                       const struct loose_group groups[2],
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

static int match_loose(const struct difftree trees[2], struct loose loose[2],
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
        struct loose_group groups[2];
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

/* ---- All matches ---- */

/* Two nodes whose subtrees are still to be compared; one may be DIFFMATCH_NONE. */
struct task {
    uint32_t nodes[2];
};

struct matching {
    const struct difftree *trees;
    uint32_t tolerance;
    struct task *tasks;
    size_t count;
    size_t task_room;
    uint64_t *lines; /* of the group that is paired, of both sides */
    uint32_t *to;
    size_t room;
};

/* Children of one function, as places in a tree's order. */
struct group {
    size_t start;
    size_t end;
};

static int push(struct matching *matching, uint32_t left, uint32_t right) {
    if (array_grow(&matching->tasks, &matching->task_room, matching->count,
                   sizeof *matching->tasks) != 0) {
        return -1;
    }
    matching->tasks[matching->count++] = (struct task){{left, right}};
    return 0;
}

static const struct difftree_node *child(const struct difftree *tree, size_t place) {
    return &tree->nodes[tree->order[place]];
}

static struct group children_of(const struct difftree *tree, uint32_t node) {
    struct group all = {0, 0};
    if (node != DIFFMATCH_NONE) {
        all.start = tree->nodes[node].first_child;
        all.end = all.start + tree->nodes[node].child_count;
    }
    return all;
}

/* Cuts off the first children, as far as they are of this function. */
static struct group take_group(const struct difftree *tree, struct group *rest, uint32_t function) {
    struct group group = {rest->start, rest->start};
    while (group.end < rest->end && child(tree, group.end)->function == function) {
        group.end++;
    }
    rest->start = group.end;
    return group;
}

static uint32_t next_function(const struct matching *matching, const struct group rest[2]) {
    uint32_t least = UINT32_MAX;
    for (size_t side = 0; side < 2; side++) {
        if (rest[side].start < rest[side].end) {
            uint32_t function = child(&matching->trees[side], rest[side].start)->function;
            least = function < least ? function : least;
        }
    }
    return least;
}

/* How far lines below these two nodes may be apart. */
static uint64_t tolerance_of(const struct matching *matching, struct task task) {
    const struct difftree_node *left = &matching->trees[0].nodes[task.nodes[0]];
    const struct difftree_node *right = &matching->trees[1].nodes[task.nodes[1]];
    if (left->build != 0 && left->build == right->build) {
        return 0;
    }
    return left->named && matching->tolerance != DIFF_ANY_LINE ? matching->tolerance
                                                               : DIFFMATCH_ANY;
}

static int reserve(struct matching *matching, size_t count) {
    if (count > matching->room) {
        free(matching->lines);
        free(matching->to);
        matching->room = count * 2;
        matching->lines = calloc(matching->room, sizeof *matching->lines);
        matching->to = calloc(matching->room, sizeof *matching->to);
    }
    return matching->lines != NULL && matching->to != NULL ? 0 : -1;
}

static int pair_up(struct matching *matching, const struct group groups[2], uint64_t tolerance) {
    size_t counts[2] = {groups[0].end - groups[0].start, groups[1].end - groups[1].start};
    uint64_t *lines;
    if (reserve(matching, counts[0] + counts[1] + 1) != 0) {
        return -1;
    }
    lines = matching->lines;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            *lines++ = child(&matching->trees[side], groups[side].start + i)->line;
        }
    }
    return diffmatch_lines(matching->lines, counts[0], matching->lines + counts[0], counts[1],
                           tolerance, matching->to);
}

/* Pairs the calls of one function; those without a partner are gone on the left, new on the right.
 */
static int add_group(struct matching *matching, const struct group groups[2], uint64_t tolerance) {
    const struct difftree *trees = matching->trees;
    size_t next = groups[1].start;
    if (pair_up(matching, groups, tolerance) != 0) {
        return -1;
    }
    for (size_t i = groups[0].start; i < groups[0].end; i++) {
        uint32_t to = matching->to[i - groups[0].start];
        size_t partner = groups[1].start + to;
        for (; to != DIFFMATCH_NONE && next < partner; next++) {
            if (push(matching, DIFFMATCH_NONE, trees[1].order[next]) != 0) {
                return -1;
            }
        }
        next += to != DIFFMATCH_NONE;
        if (push(matching, trees[0].order[i],
                 to != DIFFMATCH_NONE ? trees[1].order[partner] : DIFFMATCH_NONE) != 0) {
            return -1;
        }
    }
    for (; next < groups[1].end; next++) {
        if (push(matching, DIFFMATCH_NONE, trees[1].order[next]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int expand(struct matching *matching, struct task task) {
    struct group rest[2] = {children_of(&matching->trees[0], task.nodes[0]),
                            children_of(&matching->trees[1], task.nodes[1])};
    bool both = task.nodes[0] != DIFFMATCH_NONE && task.nodes[1] != DIFFMATCH_NONE;
    uint64_t tolerance = both ? tolerance_of(matching, task) : 0;
    int result = 0;
    while (result == 0 && (rest[0].start < rest[0].end || rest[1].start < rest[1].end)) {
        uint32_t function = next_function(matching, rest);
        struct group groups[2] = {take_group(&matching->trees[0], &rest[0], function),
                                  take_group(&matching->trees[1], &rest[1], function)};
        result = add_group(matching, groups, tolerance);
    }
    return result;
}

static bool is_leaf(const struct difftree *tree, uint32_t node) {
    return node == DIFFMATCH_NONE || (node != DIFFTREE_ROOT && tree->nodes[node].child_count == 0);
}

int diffmatch(const struct difftree trees[2], uint32_t line_tolerance,
              int (*pair)(void *context, uint32_t left, uint32_t right), void *context) {
    struct matching matching = {.trees = trees, .tolerance = line_tolerance};
    struct loose loose[2] = {{0}, {0}};
    int result = push(&matching, DIFFTREE_ROOT, DIFFTREE_ROOT);
    while (result == 0 && matching.count != 0) {
        struct task task = matching.tasks[--matching.count];
        if (!is_leaf(&trees[0], task.nodes[0]) || !is_leaf(&trees[1], task.nodes[1])) {
            result = expand(&matching, task);
        } else if (task.nodes[0] == DIFFMATCH_NONE) {
            result = add_loose(&loose[1], task.nodes[1]);
        } else if (task.nodes[1] == DIFFMATCH_NONE) {
            result = add_loose(&loose[0], task.nodes[0]);
        } else {
            result = pair(context, task.nodes[0], task.nodes[1]);
        }
    }
    if (result == 0) {
        result = match_loose(trees, loose, pair, context);
    }
    free(loose[0].leaves);
    free(loose[1].leaves);
    free(matching.tasks);
    free(matching.lines);
    free(matching.to);
    return result;
}
