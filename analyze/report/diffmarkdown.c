/* SPDX-License-Identifier: MIT */
/* diffmarkdown.c: a difference as Markdown tables, for a comment on a change. */
#include "analyze/model/shortname.h"
#include "analyze/report/calltree.h"
#include "analyze/report/diffrow.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <string.h>

static const char *const labels[METRIC_COUNT] = {
    [METRIC_MAXIMUM] = "Peak",
    [METRIC_LEAKED] = "Leaked",
    [METRIC_CUMULATIVE] = "Allocated",
    [METRIC_ALLOCATIONS] = "Allocations",
    [METRIC_TEMPORARY] = "Temporary allocations",
};

/* Text inside a cell: nothing in it ends the cell or begins anything else. */
static void put_text(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "<&\\`*_[]|~")) != '\0') {
        if (*text == '<' || *text == '&') {
            fputs(*text == '<' ? "&lt;" : "&amp;", out);
        } else {
            fprintf(out, "\\%c", *text);
        }
        text++;
    }
}

static void put_totals(const struct diff *diff, FILE *out) {
    fputs("| | before | after | change | |\n|---|--:|--:|--:|--:|\n", out);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        struct number numbers[4];
        fprintf(
            out, "| %s | %s | %s | %s | %s |\n", labels[metric],
            diffrow_amount(&numbers[0], metric, diff->totals[0].of[metric]),
            diffrow_amount(&numbers[1], metric, diff->totals[1].of[metric]),
            diffrow_change(&numbers[2], metric, diff_change(diff->totals, metric)),
            diffrow_percent(&numbers[3], diff->totals[0].of[metric], diff->totals[1].of[metric]));
    }
}

static void put_path(const struct diff *diff, const struct diff_row *row,
                     const struct diff_view *view) {
    struct report on = {0};
    struct pathwalk walk = pathwalk(&on, diff_path(diff, row, &on));
    size_t most = view->depth != 0 ? view->depth : SIZE_MAX;
    for (; walk.frame != NULL && walk.steps < most; pathwalk_next(&walk)) {
        char name[4096];
        char brief[4096];
        fputs(walk.steps != 0 ? " ← " : "", view->out);
        names_spell(walk.frame, name, sizeof name);
        put_text(view->out, view->style.full_names || walk.frame->function == NULL
                                ? name
                                : shortname(name, brief, sizeof brief));
        if (walk.frame->file != NULL) {
            fputs(" (", view->out);
            put_text(view->out, style_base(walk.frame->file));
            fprintf(view->out, ":%u)", walk.frame->line);
        }
    }
    fputs(walk.frame != NULL ? " ← …" : "", view->out);
}

static void put_row(const struct diff *diff, const struct diff_row *row,
                    const struct diff_view *view, enum metric metric) {
    struct number numbers[3];
    char name[4096];
    fprintf(view->out, "| %s | %s | %s | %s | ",
            diffrow_change(&numbers[0], metric, diff_change(row->costs, metric)),
            diffrow_amount(&numbers[1], metric, row->costs[0].of[metric]),
            diffrow_amount(&numbers[2], metric, row->costs[1].of[metric]), diffrow_state(row));
    if (diff->by == DIFF_BY_PATH && diff_frame(diff, row) != NULL) {
        put_path(diff, row, view);
    } else {
        put_text(view->out, diffrow_name(diff, row, view->style.full_names, name, sizeof name));
    }
    fputs(" |\n", view->out);
}

static void put_metric(struct diff *diff, const struct diff_view *view, enum metric metric) {
    struct diffrow_range range;
    struct number numbers[3];
    diff_sort(diff, metric);
    range = diffrow_choose(diff, view, metric);
    fprintf(view->out, "\n#### %s by %s\n\n", labels[metric], diffrow_by(diff->by));
    if (range.grown == 0 && range.shrunk == diff->row_count && range.rest == 0) {
        fputs("No change.\n", view->out);
        return;
    }
    fprintf(view->out, "| change | before | after | | %s |\n|--:|--:|--:|---|---|\n",
            diffrow_by(diff->by));
    for (size_t i = 0; i < range.grown; i++) {
        put_row(diff, &diff->rows[i], view, metric);
    }
    for (size_t i = diff->row_count; i-- > range.shrunk;) {
        put_row(diff, &diff->rows[i], view, metric);
    }
    if (range.rest != 0) {
        fprintf(view->out, "\n%s smaller: %s, %s\n", number_count(&numbers[0], range.rest),
                diffrow_change(&numbers[1], metric, range.rest_up),
                diffrow_change(&numbers[2], metric, range.rest_down));
    }
}

void diff_markdown(struct diff *diff, const struct diff_view *view) {
    fputs("### Memory: ", view->out);
    put_text(view->out, diff->sides[0].source);
    fputs(" → ", view->out);
    put_text(view->out, diff->sides[1].source);
    fputs("\n\n", view->out);
    put_totals(diff, view->out);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        if (view->metrics[metric]) {
            put_metric(diff, view, metric);
        }
    }
}
