/* SPDX-License-Identifier: MIT */
/* diff.c: what changed from one model to another. See diff.h. */
#include "analyze/report/diff.h"

#include "analyze/report/calltree.h"
#include "analyze/report/diffmatch.h"
#include "analyze/report/difftree.h"

#include <stdlib.h>
#include <string.h>

/* Leaves of one tree. All zero is empty. */
struct diffloose {
    uint32_t *leaves;
    size_t count;
    size_t capacity;
};

/* ---- What is matched loosely ---- */

enum { MOST_PAIRS = 1 << 20 }; /* that are looked at in one function */

static int diffloose_add(struct diffloose *loose, uint32_t leaf) {
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

static void diffloose_free(struct diffloose *loose) {
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

static int diffloose_match(const struct difftree trees[2], struct diffloose loose[2],
                           int (*pair)(void *context, uint32_t left, uint32_t right),
                           void *context) {
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

/* ---- The difference ---- */

/* Rows while they come. */
struct collecting {
    struct diff *diff;
    const struct difftree *trees;
    size_t capacity;
};

static int append(struct collecting *collecting, const struct diff_row *row) {
    struct diff *diff = collecting->diff;
    if (diff->row_count == collecting->capacity) {
        size_t capacity = collecting->capacity != 0 ? collecting->capacity * 2 : 64;
        struct diff_row *rows = realloc(diff->rows, capacity * sizeof *rows);
        if (rows == NULL) {
            return -1;
        }
        diff->rows = rows;
        collecting->capacity = capacity;
    }
    diff->rows[diff->row_count++] = *row;
    return 0;
}

static int add_row(void *context, uint32_t left, uint32_t right) {
    struct collecting *collecting = context;
    const uint32_t nodes[2] = {left, right};
    struct diff_row row = {0};
    for (size_t side = 0; side < 2; side++) {
        if (nodes[side] != DIFFMATCH_NONE) {
            const struct difftree_node *node = &collecting->trees[side].nodes[nodes[side]];
            row.costs[side] = node->costs;
            row.contexts[side] = node->context;
            row.present[side] = true;
        }
    }
    if (memcmp(&row.costs[0], &row.costs[1], sizeof row.costs[0]) == 0) {
        collecting->diff->same_count += row.present[0] && row.present[1];
        return 0;
    }
    return append(collecting, &row);
}

static struct diff_costs totals_of(const struct model *model) {
    struct diff_costs costs;
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        costs.of[metric] = metric_total(metric, model).main;
    }
    return costs;
}

static int match(struct diff *diff, struct difftree_words *words,
                 const struct diff_options *options) {
    struct difftree trees[2] = {{0}, {0}};
    struct collecting collecting = {.diff = diff, .trees = trees};
    int result = difftree_make(&trees[0], words, &diff->sides[0], options->by);
    if (result == 0) {
        result = difftree_make(&trees[1], words, &diff->sides[1], options->by);
    }
    if (result == 0) {
        result = diffmatch(trees, options->line_tolerance, add_row, &collecting);
    }
    difftree_free(&trees[0]);
    difftree_free(&trees[1]);
    return result;
}

/* What a running program holds, or was held once, is no leak. */
static int suppress(struct diff *diff, size_t side) {
    struct diff_side *of = &diff->sides[side];
    if (of->suppressions == NULL || of->model->live || of->model->to_ns != UINT64_MAX) {
        return 0;
    }
    if (suppressions_apply(of->suppressions, of->model, of->names, &diff->applied[side], NULL) !=
        0) {
        return -1;
    }
    of->model = &diff->applied[side];
    diff->is_applied[side] = true;
    return 0;
}

int diff_make(struct diff *diff, const struct diff_side sides[2],
              const struct diff_options *options) {
    struct difftree_words words = {0};
    int result = 0;
    *diff = (struct diff){.sides = {sides[0], sides[1]}, .by = options->by};
    for (size_t side = 0; result == 0 && side < 2; side++) {
        result = suppress(diff, side);
        if (result == 0) {
            diff->totals[side] = totals_of(diff->sides[side].model);
            result = difftree_note(&words, &diff->sides[side]);
        }
    }
    if (result == 0) {
        result = match(diff, &words, options);
    }
    difftree_free_words(&words);
    if (result != 0) {
        diff_free(diff);
    }
    return result;
}

void diff_free(struct diff *diff) {
    for (size_t side = 0; side < 2; side++) {
        if (diff->is_applied[side]) {
            suppressions_applied_free(&diff->applied[side]);
        }
        diff->is_applied[side] = false;
    }
    free(diff->rows);
    diff->rows = NULL;
    diff->row_count = 0;
}

int64_t diff_change(const struct diff_costs costs[2], enum metric metric) {
    return (int64_t)(costs[1].of[metric] - costs[0].of[metric]);
}

/* By growth; then by what it costs now; then as they were found, which contexts tell. */
static int by_growth(const void *left, const void *right, void *context) {
    enum metric metric = *(const enum metric *)context;
    const struct diff_row *a = left;
    const struct diff_row *b = right;
    int64_t change_a = diff_change(a->costs, metric);
    int64_t change_b = diff_change(b->costs, metric);
    if (change_a != change_b) {
        return change_a < change_b ? 1 : -1;
    }
    for (size_t side = 2; side-- > 0;) {
        if (a->costs[side].of[metric] != b->costs[side].of[metric]) {
            return a->costs[side].of[metric] < b->costs[side].of[metric] ? 1 : -1;
        }
        if (a->contexts[side] != b->contexts[side]) {
            return a->contexts[side] < b->contexts[side] ? -1 : 1;
        }
    }
    return 0;
}

void diff_sort(struct diff *diff, enum metric metric) {
    if (diff->row_count != 0) {
        qsort_r(diff->rows, diff->row_count, sizeof *diff->rows, by_growth, &metric);
    }
}

uint32_t diff_path(const struct diff *diff, const struct diff_row *row, struct report *report) {
    size_t side = row->contexts[1] != 0 ? 1 : 0;
    const struct model_context *context = model_find(diff->sides[side].model, row->contexts[side]);
    report->model = diff->sides[side].model;
    report->names = diff->sides[side].names;
    report->source = diff->sides[side].source;
    return context != NULL ? context->path : 0;
}

const struct names_frame *diff_frame(const struct diff *diff, const struct diff_row *row) {
    struct report report = {0};
    uint32_t node = diff_path(diff, row, &report);
    return pathwalk(&report, node).frame;
}
