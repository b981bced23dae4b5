/* SPDX-License-Identifier: MIT */
/* diffmatch.c: see diffmatch.h. */
#include "analyze/report/diffmatch.h"

#include "analyze/base/job.h"

#include <stdlib.h>

/* ---- The lines of one function in two builds ---- */

enum { MOST_STEPS = 1 << 24 }; /* of work and of memory; beyond, lines are paired by place */

static uint64_t lines_apart(int64_t left, int64_t right) {
    return left < right ? (uint64_t)right - (uint64_t)left : (uint64_t)left - (uint64_t)right;
}

static void lines_pair_by_place(uint32_t *to, size_t left_count, size_t right_count) {
    for (size_t i = 0; i < left_count; i++) {
        to[i] = i < right_count ? (uint32_t)i : DIFFMATCH_NONE;
    }
}

static void lines_pair_equal(const uint64_t *left, size_t left_count, const uint64_t *right,
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

static bool lines_is_better(struct best a, struct best b) {
    return a.pairs > b.pairs || (a.pairs == b.pairs && a.distance < b.distance);
}

static void lines_pair_within(const uint64_t *left, size_t left_count, const uint64_t *right,
                              size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t width = right_count + 1;
    struct best *best = job_array((left_count + 1) * width, sizeof *best);
    for (size_t i = 1; i <= left_count; i++) {
        for (size_t j = 1; j <= right_count; j++) {
            struct best *here = &best[i * width + j];
            struct best both = best[(i - 1) * width + j - 1];
            uint64_t apart = lines_apart((int64_t)left[i - 1], (int64_t)right[j - 1]);
            both.pairs++;
            both.distance += apart;
            *here = lines_is_better(best[(i - 1) * width + j], best[i * width + j - 1])
                        ? best[(i - 1) * width + j]
                        : best[i * width + j - 1];
            *here = apart <= tolerance && lines_is_better(both, *here) ? both : *here;
        }
    }
    for (size_t i = left_count, j = right_count; i > 0;) {
        struct best here = best[i * width + j];
        if (!lines_is_better(here, best[(i - 1) * width + j])) {
            to[--i] = DIFFMATCH_NONE;
        } else if (!lines_is_better(here, best[i * width + j - 1])) {
            j--;
        } else {
            to[--i] = (uint32_t)--j;
        }
    }
    job_release(best);
}

/* ---- Without: all of the shorter list, shifted as evenly as can be ---- */

/* The cost of pairing the line at `few` with that at `many`, all before it being paired: how far
 * the first is shifted, and by how much each one's shift differs from that of the one before. */
struct shift {
    uint64_t cost;
    uint32_t before; /* the partner of the line before */
};

static int64_t lines_shift(const uint64_t *few, size_t i, const uint64_t *many, size_t j) {
    return (int64_t)many[j] - (int64_t)few[i];
}

static struct shift lines_cheapest(const struct shift *above, const uint64_t *few, size_t i,
                                   const uint64_t *many, size_t j) {
    struct shift best = {UINT64_MAX, 0};
    for (size_t k = i - 1; k < j; k++) {
        uint64_t change =
            lines_apart(lines_shift(few, i, many, j), lines_shift(few, i - 1, many, k));
        if (above[k].cost + change < best.cost) {
            best = (struct shift){above[k].cost + change, (uint32_t)k};
        }
    }
    return best;
}

/* partner[i]: the place of few[i]'s. few_count <= many_count, neither is 0. */
static void lines_pair_evenly(const uint64_t *few, size_t few_count, const uint64_t *many,
                              size_t many_count, uint32_t *partner) {
    struct shift *table = job_array(few_count * many_count, sizeof *table);
    size_t last = few_count - 1;
    size_t best = last;
    for (size_t j = 0; j < many_count; j++) {
        table[j].cost = lines_apart(lines_shift(few, 0, many, j), 0);
    }
    for (size_t i = 1; i < few_count; i++) {
        for (size_t j = i; j < many_count; j++) {
            table[i * many_count + j] =
                lines_cheapest(&table[(i - 1) * many_count], few, i, many, j);
        }
    }
    for (size_t j = last; j < many_count; j++) {
        best = table[last * many_count + j].cost < table[last * many_count + best].cost ? j : best;
    }
    for (size_t i = few_count; i-- > 0;) {
        partner[i] = (uint32_t)best;
        best = table[i * many_count + best].before;
    }
    job_release(table);
}

static void lines_pair_any(const uint64_t *left, size_t left_count, const uint64_t *right,
                           size_t right_count, uint32_t *to) {
    uint32_t *partner;
    if (left_count <= right_count) {
        lines_pair_evenly(left, left_count, right, right_count, to);
        return;
    }
    partner = job_array(right_count, sizeof *partner);
    lines_pair_evenly(right, right_count, left, left_count, partner);
    for (size_t i = 0; i < left_count; i++) {
        to[i] = DIFFMATCH_NONE;
    }
    for (size_t j = 0; j < right_count; j++) {
        to[partner[j]] = (uint32_t)j;
    }
    job_release(partner);
}

void diffmatch_lines(const uint64_t *left, size_t left_count, const uint64_t *right,
                     size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t few = left_count < right_count ? left_count : right_count;
    size_t many = left_count < right_count ? right_count : left_count;
    bool is_large = many != 0 && few * many > MOST_STEPS / many;
    if (tolerance == 0) {
        lines_pair_equal(left, left_count, right, right_count, to);
    } else if (tolerance != DIFFMATCH_ANY && few * many <= MOST_STEPS / 4) {
        lines_pair_within(left, left_count, right, right_count, tolerance, to);
    } else if (few == many || few == 0 || is_large) {
        lines_pair_by_place(to, left_count, right_count);
    } else {
        lines_pair_any(left, left_count, right, right_count, to);
    }
}

/* ---- What is matched loosely ---- */

enum { MOST_PAIRS = 1 << 20 }; /* that are looked at in one function */

/* Leaves of one tree. All zero is empty. */
struct loose {
    uint32_t *leaves;
    size_t count;
    size_t room;
};

/* Nodes of one function, next to each other in a list: [start, end). */
struct group {
    size_t start;
    size_t end;
};

/* Two nodes whose subtrees are still to be compared; one may be DIFFMATCH_NONE. */
struct task {
    uint32_t nodes[2];
};

struct matching {
    const struct difftree *trees;
    uint32_t tolerance;
    diffmatch_pair *pair;
    void *context;
    struct task *tasks;
    size_t count;
    size_t task_room;
    uint64_t *lines; /* of the group that is paired, of both sides */
    uint32_t *to;
    size_t line_room, to_room;
    struct loose loose[2];
};

static void loose_add(struct loose *loose, uint32_t leaf) {
    job_grow(&loose->leaves, &loose->room, loose->count, sizeof *loose->leaves);
    loose->leaves[loose->count++] = leaf;
}

/* The function that allocates; of flat trees, whose leaves hang at the root, the root. */
static const struct difftree_node *loose_innermost(const struct difftree *tree, uint32_t leaf) {
    return &tree->nodes[tree->nodes[leaf].parent];
}

static int loose_by_function(const void *left, const void *right, void *context) {
    const struct difftree *tree = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint32_t function_a = loose_innermost(tree, a)->function;
    uint32_t function_b = loose_innermost(tree, b)->function;
    if (function_a != function_b) {
        return function_a < function_b ? -1 : 1;
    }
    return (a > b) - (a < b);
}

static size_t loose_length(const struct difftree *tree, uint32_t leaf) {
    size_t length = 0;
    for (uint32_t at = leaf; at != DIFFTREE_ROOT; at = tree->nodes[at].parent) {
        length++;
    }
    return length;
}

/* Whether all functions of the short path are in the long one, in their order, and both begin
 * alike. */
static bool loose_is_part(const struct difftree *short_tree, uint32_t short_leaf,
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
static size_t loose_distance(const struct difftree trees[2], uint32_t left, uint32_t right) {
    const struct difftree_node *functions[2] = {loose_innermost(&trees[0], left),
                                                loose_innermost(&trees[1], right)};
    size_t lengths[2] = {loose_length(&trees[0], left), loose_length(&trees[1], right)};
    bool same_build = functions[0]->build != 0 && functions[0]->build == functions[1]->build;
    if (same_build || lengths[0] == lengths[1]) { /* nothing is lacking there */
        return SIZE_MAX;
    }
    if (lengths[0] < lengths[1]) {
        return loose_is_part(&trees[0], left, &trees[1], right) ? lengths[1] - lengths[0]
                                                                : SIZE_MAX;
    }
    return loose_is_part(&trees[1], right, &trees[0], left) ? lengths[0] - lengths[1] : SIZE_MAX;
}

/* The nearest that is still free, whose place is taken from the list. */
static uint32_t loose_take_nearest(const struct difftree trees[2], uint32_t left,
                                   struct loose *right, struct group group) {
    size_t best = SIZE_MAX;
    size_t place = SIZE_MAX;
    uint32_t leaf;
    for (size_t i = group.start; i < group.end; i++) {
        size_t apart = right->leaves[i] != DIFFMATCH_NONE
                           ? loose_distance(trees, left, right->leaves[i])
                           : SIZE_MAX;
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

/* Pairs what is loose of one function. */
static void loose_match_group(struct matching *matching, const struct group groups[2]) {
    struct loose *loose = matching->loose;
    size_t many = groups[1].end - groups[1].start;
    bool is_large = many != 0 && groups[0].end - groups[0].start > MOST_PAIRS / many;
    for (size_t i = groups[0].start; i < groups[0].end; i++) {
        uint32_t left = loose[0].leaves[i];
        matching->pair(matching->context, left,
                       is_large ? DIFFMATCH_NONE
                                : loose_take_nearest(matching->trees, left, &loose[1], groups[1]));
    }
    for (size_t i = groups[1].start; i < groups[1].end; i++) {
        if (loose[1].leaves[i] != DIFFMATCH_NONE) {
            matching->pair(matching->context, DIFFMATCH_NONE, loose[1].leaves[i]);
        }
    }
}

static uint32_t loose_function(const struct matching *matching, size_t side, size_t place) {
    return loose_innermost(&matching->trees[side], matching->loose[side].leaves[place])->function;
}

static void loose_match(struct matching *matching) {
    struct loose *loose = matching->loose;
    struct group groups[2] = {{0, 0}, {0, 0}};
    for (size_t side = 0; side < 2; side++) {
        if (loose[side].count != 0) {
            qsort_r(loose[side].leaves, loose[side].count, sizeof *loose[side].leaves,
                    loose_by_function, (void *)&matching->trees[side]);
        }
    }
    while (groups[0].end < loose[0].count || groups[1].end < loose[1].count) {
        uint32_t least = UINT32_MAX;
        for (size_t side = 0; side < 2; side++) {
            if (groups[side].end < loose[side].count) {
                uint32_t function = loose_function(matching, side, groups[side].end);
                least = function < least ? function : least;
            }
        }
        for (size_t side = 0; side < 2; side++) {
            struct group *group = &groups[side];
            group->start = group->end;
            while (group->end < loose[side].count &&
                   loose_function(matching, side, group->end) == least) {
                group->end++;
            }
        }
        loose_match_group(matching, groups);
    }
}

/* ---- All matches ---- */

static void matching_push(struct matching *matching, uint32_t left, uint32_t right) {
    job_grow(&matching->tasks, &matching->task_room, matching->count, sizeof *matching->tasks);
    matching->tasks[matching->count++] = (struct task){{left, right}};
}

static const struct difftree_node *matching_child(const struct difftree *tree, size_t place) {
    return &tree->nodes[tree->order[place]];
}

static struct group matching_children(const struct difftree *tree, uint32_t node) {
    struct group all = {0, 0};
    if (node != DIFFMATCH_NONE) {
        all.start = tree->nodes[node].first_child;
        all.end = all.start + tree->nodes[node].child_count;
    }
    return all;
}

/* Cuts off the first children, as far as they are of this function. */
static struct group matching_take_group(const struct difftree *tree, struct group *rest,
                                        uint32_t function) {
    struct group group = {rest->start, rest->start};
    while (group.end < rest->end && matching_child(tree, group.end)->function == function) {
        group.end++;
    }
    rest->start = group.end;
    return group;
}

static uint32_t matching_next_function(const struct matching *matching,
                                       const struct group rest[2]) {
    uint32_t least = UINT32_MAX;
    for (size_t side = 0; side < 2; side++) {
        if (rest[side].start < rest[side].end) {
            uint32_t function = matching_child(&matching->trees[side], rest[side].start)->function;
            least = function < least ? function : least;
        }
    }
    return least;
}

/* How far lines below these two nodes may be apart. */
static uint64_t matching_tolerance(const struct matching *matching, struct task task) {
    const struct difftree_node *left = &matching->trees[0].nodes[task.nodes[0]];
    const struct difftree_node *right = &matching->trees[1].nodes[task.nodes[1]];
    if (left->build != 0 && left->build == right->build) {
        return 0;
    }
    return left->named && matching->tolerance != DIFF_ANY_LINE ? matching->tolerance
                                                               : DIFFMATCH_ANY;
}

/* Pairs the calls of one function; those without a partner are gone on the left, new on the right.
 */
static void matching_add_group(struct matching *matching, const struct group groups[2],
                               uint64_t tolerance) {
    const struct difftree *trees = matching->trees;
    size_t counts[2] = {groups[0].end - groups[0].start, groups[1].end - groups[1].start};
    size_t next = groups[1].start;
    uint64_t *lines;
    job_reserve(&matching->lines, &matching->line_room, counts[0] + counts[1],
                sizeof *matching->lines);
    job_reserve(&matching->to, &matching->to_room, counts[0], sizeof *matching->to);
    lines = matching->lines;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = groups[side].start; i < groups[side].end; i++) {
            *lines++ = matching_child(&trees[side], i)->line;
        }
    }
    diffmatch_lines(matching->lines, counts[0], matching->lines + counts[0], counts[1], tolerance,
                    matching->to);
    for (size_t i = groups[0].start; i < groups[0].end; i++) {
        uint32_t to = matching->to[i - groups[0].start];
        size_t partner = groups[1].start + to;
        for (; to != DIFFMATCH_NONE && next < partner; next++) {
            matching_push(matching, DIFFMATCH_NONE, trees[1].order[next]);
        }
        next += to != DIFFMATCH_NONE;
        matching_push(matching, trees[0].order[i],
                      to != DIFFMATCH_NONE ? trees[1].order[partner] : DIFFMATCH_NONE);
    }
    for (; next < groups[1].end; next++) {
        matching_push(matching, DIFFMATCH_NONE, trees[1].order[next]);
    }
}

static void matching_expand(struct matching *matching, struct task task) {
    struct group rest[2] = {matching_children(&matching->trees[0], task.nodes[0]),
                            matching_children(&matching->trees[1], task.nodes[1])};
    bool both = task.nodes[0] != DIFFMATCH_NONE && task.nodes[1] != DIFFMATCH_NONE;
    uint64_t tolerance = both ? matching_tolerance(matching, task) : 0;
    while (rest[0].start < rest[0].end || rest[1].start < rest[1].end) {
        uint32_t function = matching_next_function(matching, rest);
        struct group groups[2] = {matching_take_group(&matching->trees[0], &rest[0], function),
                                  matching_take_group(&matching->trees[1], &rest[1], function)};
        matching_add_group(matching, groups, tolerance);
    }
}

static bool matching_is_leaf(const struct difftree *tree, uint32_t node) {
    return node == DIFFMATCH_NONE || (node != DIFFTREE_ROOT && tree->nodes[node].child_count == 0);
}

void diffmatch(const struct difftree trees[2], uint32_t line_tolerance, diffmatch_pair *pair,
               void *context) {
    struct matching matching = {
        .trees = trees, .tolerance = line_tolerance, .pair = pair, .context = context};
    matching_push(&matching, DIFFTREE_ROOT, DIFFTREE_ROOT);
    while (matching.count != 0) {
        struct task task = matching.tasks[--matching.count];
        if (!matching_is_leaf(&trees[0], task.nodes[0]) ||
            !matching_is_leaf(&trees[1], task.nodes[1])) {
            matching_expand(&matching, task);
        } else if (task.nodes[0] == DIFFMATCH_NONE) {
            loose_add(&matching.loose[1], task.nodes[1]);
        } else if (task.nodes[1] == DIFFMATCH_NONE) {
            loose_add(&matching.loose[0], task.nodes[0]);
        } else {
            pair(context, task.nodes[0], task.nodes[1]);
        }
    }
    loose_match(&matching);
}
