/* SPDX-License-Identifier: MIT */
/* difftext.c: a difference for people: totals of both sides, then what grew and what shrank. */
#include "analyze/report/calltree.h"
#include "analyze/report/diffrow.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <inttypes.h>

static const char *const labels[METRIC_COUNT] = {
    [METRIC_MAXIMUM] = "peak",         [METRIC_LEAKED] = "leaked",
    [METRIC_CUMULATIVE] = "allocated", [METRIC_ALLOCATIONS] = "allocations",
    [METRIC_TEMPORARY] = "temporary",
};

static enum style style_of(int64_t change) {
    return change > 0 ? STYLE_HOT : STYLE_PLAIN;
}

static void put_sources(const struct report *report, const struct diff *diff) {
    static const char *const names[2] = {"before", "after"};
    fprintf(report->out, "%sMemTrace difference of ", style_on(report, STYLE_HEADING));
    put_safe(report->out, style_base(diff->sides[1].model->header.executable));
    fprintf(report->out, "%s\n", style_off(report));
    for (size_t side = 0; side < 2; side++) {
        const struct model *model = diff->sides[side].model;
        fprintf(report->out, "  %s%-7s%s ", style_on(report, STYLE_DIM), names[side],
                style_off(report));
        put_safe(report->out, diff->sides[side].source);
        if (model->recording.sampled) {
            fputs(" (sampled: estimates)", report->out);
        }
        if (diff->is_applied[side] && diff->sides[side].suppressions->blocks != 0) {
            struct number bytes;
            fprintf(report->out, " (%s of leaks are suppressed)",
                    number_bytes(&bytes, diff->sides[side].suppressions->bytes));
        }
        if (model->damage[0] != '\0') {
            fputs(style_on(report, STYLE_WARM), report->out);
            print_safe(report->out, " (damaged: %s)", model->damage);
            fputs(style_off(report), report->out);
        }
        fputc('\n', report->out);
    }
}

static void put_totals(const struct report *report, const struct diff *diff) {
    fprintf(report->out, "\n  %s%-19s %14s %14s %14s%s\n", style_on(report, STYLE_DIM), "",
            "before", "after", "change", style_off(report));
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        uint64_t before = diff->totals[0].of[metric];
        uint64_t after = diff->totals[1].of[metric];
        int64_t change = diff_change(diff->totals, metric);
        struct number numbers[4];
        fprintf(report->out, "  %s%-19s%s %14s %14s %s%14s%s %9s\n", style_on(report, STYLE_DIM),
                labels[metric], style_off(report), diffrow_amount(&numbers[0], metric, before),
                diffrow_amount(&numbers[1], metric, after), style_on(report, style_of(change)),
                diffrow_change(&numbers[2], metric, change), style_off(report),
                diffrow_percent(&numbers[3], before, after));
    }
}

static void put_row(const struct report *report, const struct diff *diff,
                    const struct diff_row *row, const struct diff_view *view, enum metric metric) {
    int64_t change = diff_change(row->costs, metric);
    const char *state = diffrow_state(row);
    struct number numbers[3];
    char name[4096];
    fprintf(report->out, "  %s%14s%s %14s %14s", style_on(report, style_of(change)),
            diffrow_change(&numbers[0], metric, change), style_off(report),
            diffrow_amount(&numbers[1], metric, row->costs[0].of[metric]),
            diffrow_amount(&numbers[2], metric, row->costs[1].of[metric]));
    if (diff->by == DIFF_BY_PATH) {
        fprintf(report->out, "%s%s\n", state[0] != '\0' ? "  " : "", state);
        struct report on = *report;
        uint32_t node = diff_path(diff, row, &on);
        style_path(report, pathwalk_folded(&on, node), view->depth);
        return;
    }
    fprintf(report->out, "  %-4s  ", state);
    style_text(report, diffrow_name(diff, row, report->options.full_names, name, sizeof name));
    fputc('\n', report->out);
}

static void put_rest(const struct report *report, const struct diffrow_range *range,
                     enum metric metric) {
    struct number count;
    struct number up;
    struct number down;
    if (range->rest == 0) {
        return;
    }
    fprintf(report->out, "%s  (%s smaller: %s, %s)%s\n", style_on(report, STYLE_DIM),
            number_count(&count, range->rest), diffrow_change(&up, metric, range->rest_up),
            diffrow_change(&down, metric, range->rest_down), style_off(report));
}

static void put_metric(const struct report *report, struct diff *diff, const struct diff_view *view,
                       enum metric metric) {
    struct diffrow_range range;
    diff_sort(diff, metric);
    range = diffrow_choose(diff, view, metric);
    fprintf(report->out, "\n%s%s by %s%s\n", style_on(report, STYLE_HEADING), labels[metric],
            diffrow_by(diff->by), style_off(report));
    if (range.grown == 0 && range.shrunk == diff->row_count && range.rest == 0) {
        fputs("  no change\n", report->out);
        return;
    }
    fprintf(report->out, "  %s%14s %14s %14s%s\n", style_on(report, STYLE_DIM), "change", "before",
            "after", style_off(report));
    for (size_t i = 0; i < range.grown; i++) {
        put_row(report, diff, &diff->rows[i], view, metric);
    }
    for (size_t i = diff->row_count; i-- > range.shrunk;) {
        put_row(report, diff, &diff->rows[i], view, metric);
    }
    put_rest(report, &range, metric);
}

void diff_text(struct diff *diff, const struct diff_view *view) {
    struct report report = {.out = view->out,
                            .options = view->style,
                            .model = diff->sides[1].model,
                            .names = diff->sides[1].names,
                            .source = diff->sides[1].source};
    put_sources(&report, diff);
    put_totals(&report, diff);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        if (view->metrics[metric]) {
            put_metric(&report, diff, view, metric);
        }
    }
}
