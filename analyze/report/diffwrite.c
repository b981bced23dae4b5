/* SPDX-License-Identifier: MIT */
/* diffwrite.c: a difference as text, Markdown, JSON and CSV. See diff.h. */
#include "analyze/model/names.h"
#include "analyze/report/calltree.h"
#include "analyze/report/diff.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A sorted difference by one metric: rows [0, grown) are shown as grown, [shrunk, row_count) as
 * shrunk, most first from the end; what is between is too small, or too much for the limit. */
struct diffrow_range {
    size_t grown;
    size_t shrunk;
    size_t rest;     /* of those between: changed at all */
    int64_t rest_up; /* and by how much */
    int64_t rest_down;
};

/* ---- What the forms share: names, words, numbers ---- */

static const char *diffrow_by(enum diff_by by) {
    static const char *const names[] = {"call path", "function", "file", "module"};
    return names[by];
}

static const char *diffrow_state(const struct diff_row *row) {
    if (row->present[0] && row->present[1]) {
        return "";
    }
    return row->present[1] ? "new" : "gone";
}

static const char *diffrow_metric(enum metric metric) {
    static const char *const names[METRIC_COUNT] = {
        [METRIC_MAXIMUM] = "maximum_bytes",  [METRIC_LEAKED] = "leaked_bytes",
        [METRIC_CUMULATIVE] = "total_bytes", [METRIC_ALLOCATIONS] = "allocations",
        [METRIC_TEMPORARY] = "temporary",
    };
    return names[metric];
}

static const char *spell(const struct names_frame *frame, bool full_names, char *buffer,
                         size_t size) {
    char name[4096];
    if (full_names || frame->function == NULL) {
        return names_spell(frame, buffer, size);
    }
    return shortname(names_spell(frame, name, sizeof name), buffer, size);
}

static const char *diffrow_name(const struct diff *diff, const struct diff_row *row,
                                bool full_names, char *buffer, size_t size) {
    const struct names_frame *frame = diff_frame(diff, row);
    if (frame == NULL) {
        snprintf(buffer, size, "(no call path was recorded)");
    } else if (diff->by == DIFF_BY_PATH || diff->by == DIFF_BY_FUNCTION) {
        spell(frame, full_names, buffer, size);
    } else if (diff->by == DIFF_BY_FILE && frame->file != NULL) {
        snprintf(buffer, size, "%s", style_base(frame->file));
    } else if (frame->module[0] != '\0') {
        snprintf(buffer, size, "%s", style_base(frame->module));
    } else {
        snprintf(buffer, size, "(unknown code)");
    }
    return buffer;
}

static bool is_bytes(enum metric metric) {
    return metric != METRIC_ALLOCATIONS && metric != METRIC_TEMPORARY;
}

static const char *diffrow_change(struct number *number, enum metric metric, int64_t change) {
    struct number count;
    uint64_t size = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
    const char *sign = change < 0 ? "-" : "+";
    if (is_bytes(metric)) {
        return number_change(number, change);
    }
    snprintf(number->text, sizeof number->text, "%s%s", change != 0 ? sign : "",
             number_count(&count, size));
    return number->text;
}

static const char *diffrow_percent(struct number *number, uint64_t before, uint64_t after) {
    double percent = before != 0 ? 100.0 * ((double)after - (double)before) / (double)before : 0;
    number->text[0] = '\0';
    if (before != 0) {
        snprintf(number->text, sizeof number->text, after == before ? "0%%" : "%+.1f%%", percent);
    }
    return number->text;
}

static const char *diffrow_amount(struct number *number, enum metric metric, uint64_t amount) {
    return metric_main_text(metric, number, (struct cost){.main = amount});
}

static struct diffrow_range diffrow_choose(const struct diff *diff, const struct diff_view *view,
                                           enum metric metric) {
    struct diffrow_range range = {.shrunk = diff->row_count};
    size_t limit = view->limit != 0 ? view->limit : SIZE_MAX;
    int64_t least = view->least < INT64_MAX ? (int64_t)view->least : INT64_MAX;
    least = least > 0 ? least : 1;
    while (range.grown < diff->row_count && range.grown < limit &&
           diff_change(diff->rows[range.grown].costs, metric) >= least) {
        range.grown++;
    }
    while (range.shrunk > range.grown && diff->row_count - range.shrunk < limit &&
           diff_change(diff->rows[range.shrunk - 1].costs, metric) <= -least) {
        range.shrunk--;
    }
    for (size_t i = range.grown; i < range.shrunk; i++) {
        int64_t change = diff_change(diff->rows[i].costs, metric);
        range.rest += change != 0;
        range.rest_up += change > 0 ? change : 0;
        range.rest_down += change < 0 ? change : 0;
    }
    return range;
}

/* ---- Text: totals of both sides, then what grew and what shrank ---- */

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

/* ---- Markdown, for a comment on a change ---- */

static const char *const titles[METRIC_COUNT] = {
    [METRIC_MAXIMUM] = "Peak",
    [METRIC_LEAKED] = "Leaked",
    [METRIC_CUMULATIVE] = "Allocated",
    [METRIC_ALLOCATIONS] = "Allocations",
    [METRIC_TEMPORARY] = "Temporary allocations",
};

/* Text inside a cell: nothing in it ends the cell or begins anything else. */
static void put_markdown_text(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "<&\\`*_[]|~")) != '\0') {
        if (*text == '<' || *text == '&') {
            fputs(*text == '<' ? "&lt;" : "&amp;", out);
        } else {
            fprintf(out, "\\%c", *text);
        }
        text++;
    }
}

static void put_markdown_totals(const struct diff *diff, FILE *out) {
    fputs("| | before | after | change | |\n|---|--:|--:|--:|--:|\n", out);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        struct number numbers[4];
        fprintf(
            out, "| %s | %s | %s | %s | %s |\n", titles[metric],
            diffrow_amount(&numbers[0], metric, diff->totals[0].of[metric]),
            diffrow_amount(&numbers[1], metric, diff->totals[1].of[metric]),
            diffrow_change(&numbers[2], metric, diff_change(diff->totals, metric)),
            diffrow_percent(&numbers[3], diff->totals[0].of[metric], diff->totals[1].of[metric]));
    }
}

static void put_markdown_path(const struct diff *diff, const struct diff_row *row,
                              const struct diff_view *view) {
    struct report on = {0};
    struct pathwalk walk = pathwalk(&on, diff_path(diff, row, &on));
    size_t most = view->depth != 0 ? view->depth : SIZE_MAX;
    for (; walk.frame != NULL && walk.steps < most; pathwalk_next(&walk)) {
        char name[4096];
        char brief[4096];
        fputs(walk.steps != 0 ? " ← " : "", view->out);
        names_spell(walk.frame, name, sizeof name);
        put_markdown_text(view->out, view->style.full_names || walk.frame->function == NULL
                                         ? name
                                         : shortname(name, brief, sizeof brief));
        if (walk.frame->file != NULL) {
            fputs(" (", view->out);
            put_markdown_text(view->out, style_base(walk.frame->file));
            fprintf(view->out, ":%u)", walk.frame->line);
        }
    }
    fputs(walk.frame != NULL ? " ← …" : "", view->out);
}

static void put_markdown_row(const struct diff *diff, const struct diff_row *row,
                             const struct diff_view *view, enum metric metric) {
    struct number numbers[3];
    char name[4096];
    fprintf(view->out, "| %s | %s | %s | %s | ",
            diffrow_change(&numbers[0], metric, diff_change(row->costs, metric)),
            diffrow_amount(&numbers[1], metric, row->costs[0].of[metric]),
            diffrow_amount(&numbers[2], metric, row->costs[1].of[metric]), diffrow_state(row));
    if (diff->by == DIFF_BY_PATH && diff_frame(diff, row) != NULL) {
        put_markdown_path(diff, row, view);
    } else {
        put_markdown_text(view->out,
                          diffrow_name(diff, row, view->style.full_names, name, sizeof name));
    }
    fputs(" |\n", view->out);
}

static void put_markdown_metric(struct diff *diff, const struct diff_view *view,
                                enum metric metric) {
    struct diffrow_range range;
    struct number numbers[3];
    diff_sort(diff, metric);
    range = diffrow_choose(diff, view, metric);
    fprintf(view->out, "\n#### %s by %s\n\n", titles[metric], diffrow_by(diff->by));
    if (range.grown == 0 && range.shrunk == diff->row_count && range.rest == 0) {
        fputs("No change.\n", view->out);
        return;
    }
    fprintf(view->out, "| change | before | after | | %s |\n|--:|--:|--:|---|---|\n",
            diffrow_by(diff->by));
    for (size_t i = 0; i < range.grown; i++) {
        put_markdown_row(diff, &diff->rows[i], view, metric);
    }
    for (size_t i = diff->row_count; i-- > range.shrunk;) {
        put_markdown_row(diff, &diff->rows[i], view, metric);
    }
    if (range.rest != 0) {
        fprintf(view->out, "\n%s smaller: %s, %s\n", number_count(&numbers[0], range.rest),
                diffrow_change(&numbers[1], metric, range.rest_up),
                diffrow_change(&numbers[2], metric, range.rest_down));
    }
}

void diff_markdown(struct diff *diff, const struct diff_view *view) {
    fputs("### Memory: ", view->out);
    put_markdown_text(view->out, diff->sides[0].source);
    fputs(" → ", view->out);
    put_markdown_text(view->out, diff->sides[1].source);
    fputs("\n\n", view->out);
    put_markdown_totals(diff, view->out);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        if (view->metrics[metric]) {
            put_markdown_metric(diff, view, metric);
        }
    }
}

/* ---- JSON and CSV: every row and every metric, without threshold ---- */

static enum metric first_metric(const struct diff_view *view) {
    enum metric metric = 0;
    while (metric + 1 < METRIC_COUNT && !view->metrics[metric]) {
        metric++;
    }
    return view->metrics[metric] ? metric : METRIC_MAXIMUM;
}

static const char *state_of(const struct diff_row *row) {
    const char *state = diffrow_state(row);
    return state[0] != '\0' ? state : "changed";
}

/* ---- JSON ---- */

static void put_json_costs(struct jsonwriter *json, const struct diff_costs costs[2]) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        jsonwriter_map(json, diffrow_metric(metric));
        jsonwriter_number(json, "before", costs[0].of[metric]);
        jsonwriter_number(json, "after", costs[1].of[metric]);
        jsonwriter_integer(json, "change", diff_change(costs, metric));
        jsonwriter_end_map(json);
    }
}

static void put_json_side(struct jsonwriter *json, const char *name, const struct diff_side *side) {
    jsonwriter_map(json, name);
    jsonwriter_string(json, "source", side->source);
    jsonwriter_string(json, "executable", side->model->header.executable);
    jsonwriter_bool(json, "sampled", side->model->recording.sampled);
    jsonwriter_number(json, "suppressed_bytes",
                      side->suppressions != NULL ? side->suppressions->bytes : 0);
    jsonwriter_string(json, "damage", side->model->damage[0] != '\0' ? side->model->damage : NULL);
    jsonwriter_end_map(json);
}

static void put_json_row(struct jsonwriter *json, const struct diff *diff,
                         const struct diff_row *row) {
    char name[4096];
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", diffrow_name(diff, row, true, name, sizeof name));
    jsonwriter_string(json, "state", state_of(row));
    put_json_costs(json, row->costs);
    if (diff->by == DIFF_BY_PATH) {
        struct report on = {0};
        uint32_t node = diff_path(diff, row, &on);
        tabledata_json_path(&on, json, "frames", node);
    }
    jsonwriter_end_map(json);
}

int diff_json(struct diff *diff, const struct diff_view *view) {
    struct jsonwriter *json = jsonwriter_open(view->out, JSONWRITER_INDENTED);
    if (json == NULL) {
        return -1;
    }
    diff_sort(diff, first_metric(view));
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    put_json_side(json, "before", &diff->sides[0]);
    put_json_side(json, "after", &diff->sides[1]);
    jsonwriter_map(json, "totals");
    put_json_costs(json, diff->totals);
    jsonwriter_end_map(json);
    jsonwriter_string(json, "by", diff->by == DIFF_BY_PATH ? "path" : diffrow_by(diff->by));
    jsonwriter_number(json, "same", diff->same_count);
    jsonwriter_array(json, "rows");
    for (size_t i = 0; i < diff->row_count; i++) {
        put_json_row(json, diff, &diff->rows[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    return 0;
}

/* ---- CSV ---- */

/* state, name, three numbers a metric, path */
enum { COLUMNS = 3 + 3 * METRIC_COUNT };

static void put_csv_row(struct table *table, struct report *report, const struct diff *diff,
                        const struct diff_row *row) {
    char name[4096];
    struct table_cell cells[COLUMNS] = {
        table_text(state_of(row)), table_text(diffrow_name(diff, row, true, name, sizeof name))};
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        struct table_cell *three = &cells[2 + 3 * metric];
        three[0] = table_number(row->costs[0].of[metric]);
        three[1] = table_number(row->costs[1].of[metric]);
        three[2] = table_number((uint64_t)diff_change(row->costs, metric));
    }
    cells[COLUMNS - 1] = table_text("");
    if (diff->by == DIFF_BY_PATH) {
        cells[COLUMNS - 1] = table_path(diff_path(diff, row, report));
    }
    table_row(table, cells);
}

void diff_csv(struct diff *diff, const struct diff_view *view) {
    static const char *const ends[] = {"before", "after", "change"};
    bool has_paths = diff->by == DIFF_BY_PATH;
    struct table_column columns[COLUMNS] = {
        {"state", NULL, TABLE_WORD},
        {"name", NULL, TABLE_TEXT},
        [COLUMNS - 1] = {"path", NULL, has_paths ? TABLE_PATH : TABLE_TEXT},
    };
    char names[COLUMNS][40];
    struct report report = {.out = view->out, .options = {.format = REPORT_CSV}};
    struct table table;
    diff_sort(diff, first_metric(view));
    for (size_t i = 2; i < COLUMNS - 1; i++) {
        snprintf(names[i], sizeof names[i], "%s_%s", diffrow_metric((i - 2) / 3),
                 ends[(i - 2) % 3]);
        columns[i] =
            (struct table_column){names[i], NULL, (i - 2) % 3 == 2 ? TABLE_SIGNED : TABLE_COUNT};
    }
    table = table_open(&report, "difference", NULL, columns, COLUMNS);
    for (size_t i = 0; i < diff->row_count; i++) {
        put_csv_row(&table, &report, diff, &diff->rows[i]);
    }
    table_close(&table);
}
