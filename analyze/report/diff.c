/* SPDX-License-Identifier: MIT */
/* diff.c: what changed from one model to another. See diff.h. */
#include "analyze/report/diff.h"

#include "analyze/report/calltree.h"
#include "analyze/report/diffmatch.h"

#include <stdlib.h>
#include <string.h>

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
