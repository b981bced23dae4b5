/* SPDX-License-Identifier: MIT */
/* diffwrite.c: a difference as text, Markdown, JSON and CSV. See diff.h. */
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/report/diff.h"
#include "analyze/rows/facts.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdio.h>

/* ---- What the forms share: names, words, numbers ---- */

static const char *diffwrite_by_word(enum diff_by by) {
    static const char *const names[] = {"call path", "function", "file", "module"};
    return names[by];
}

/* NULL: it was there before, and is after. */
static const char *diffwrite_state_of(const struct diff_row *row) {
    return row->present[0] && row->present[1] ? NULL : row->present[1] ? "new" : "gone";
}

static const char *diffwrite_name_of(const struct diff *diff, const struct diff_row *row,
                                     bool full_names, char *buffer, size_t size) {
    const struct names_frame *frame = diff_frame(diff, row);
    if (frame == NULL) {
        snprintf(buffer, size, "(no call path was recorded)");
    } else if (diff->by == DIFF_BY_PATH || diff->by == DIFF_BY_FUNCTION) {
        shortname_of(frame, full_names, buffer, size);
    } else if (diff->by == DIFF_BY_FILE && frame->file != NULL) {
        snprintf(buffer, size, "%s", pathname_base(frame->file));
    } else if (frame->module[0] != '\0') {
        snprintf(buffer, size, "%s", pathname_base(frame->module));
    } else {
        snprintf(buffer, size, "(unknown code)");
    }
    return buffer;
}

/* A number before or after, or its change: of columns whose rows are of several metrics, too. */
static struct table_cell amount(enum metric metric, uint64_t number) {
    return (struct table_cell){
        .is_known = true, .number = number, .kind = metric_main_kind(metric)};
}

static struct table_cell change(enum metric metric, int64_t number) {
    return (struct table_cell){.is_known = true,
                               .number = (uint64_t)number,
                               .kind = metric_main_is_bytes(metric) ? TABLE_BYTES_CHANGE
                                                                    : TABLE_CHANGE};
}

/* ---- Text and Markdown: totals of both sides, then what grew and what shrank ---- */

static void note_side(struct table *table, const struct diff *diff, size_t side) {
    static const char *const names[2] = {"before", "after"};
    const struct diff_side *of = &diff->sides[side];
    bool is_damaged = of->model->damage[0] != '\0';
    char suppressed[100] = "";
    if (diff->is_applied[side] && of->suppressions->blocks != 0) {
        struct number bytes;
        snprintf(suppressed, sizeof suppressed, " (%s of leaks are suppressed)",
                 number_bytes(&bytes, of->suppressions->bytes));
    }
    table_note(table, "%s: %s%s%s%s%s%s%s%s", names[side], of->source,
               of->selected != NULL ? " " : "", of->selected != NULL ? of->selected : "",
               model_is_estimate(of->model) ? " (sampled: estimates)" : "", suppressed,
               is_damaged ? " (damaged: " : "", of->model->damage, is_damaged ? ")" : "");
}

static struct table_cell diffwrite_spell_percent(struct number *number, uint64_t before,
                                                 uint64_t after) {
    double percent = before != 0 ? 100.0 * ((double)after - (double)before) / (double)before : 0;
    snprintf(number->text, sizeof number->text, after == before ? "0%%" : "%+.1f%%", percent);
    return (struct table_cell){.is_known = before != 0, .real = percent, .text = number->text};
}

static void diffwrite_put_totals(const struct report *report, const struct diff *diff) {
    static const struct table_column columns[] = {
        {"metric", "", TABLE_WORD, 15},        {"before", "before", TABLE_ANY, 14},
        {"after", "after", TABLE_ANY, 14},     {"change", "change", TABLE_ANY, 14},
        {"percent", "percent", TABLE_REAL, 9},
    };
    char title[300];
    struct table table;
    snprintf(title, sizeof title, "MemTrace difference of %.255s",
             memtrace_program(&report->model->header));
    table = table_open(report, "totals", title, columns, 5);
    note_side(&table, diff, 0);
    note_side(&table, diff, 1);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        uint64_t before = diff->totals[0].of[metric];
        uint64_t after = diff->totals[1].of[metric];
        struct number percent;
        table_row(&table, (struct table_cell[]){table_text(metric_word(metric)),
                                                amount(metric, before), amount(metric, after),
                                                change(metric, diff_change(diff->totals, metric)),
                                                diffwrite_spell_percent(&percent, before, after)});
    }
    table_close(&table);
}

/* report becomes that of the side whose call path is shown. */
static void diffwrite_put_row(struct table *table, struct report *report, const struct diff *diff,
                              const struct diff_row *row, enum metric metric) {
    const char *state = diffwrite_state_of(row);
    char name[4096];
    table_row(table,
              (struct table_cell[]){
                  change(metric, diff_change(row->costs, metric)),
                  amount(metric, row->costs[0].of[metric]),
                  amount(metric, row->costs[1].of[metric]), table_text(state != NULL ? state : ""),
                  diff->by == DIFF_BY_PATH
                      ? table_path(diff_path(diff, row, report))
                      : table_text(diffwrite_name_of(diff, row, report->options.full_names, name,
                                                     sizeof name))});
}

/* A sorted difference by one metric: rows [0, grown) are shown as grown, [shrunk, row_count) as
 * shrunk, most first from the end; what is between is too small, or too much for the limit. */
struct range {
    size_t grown;
    size_t shrunk;
    size_t rest;     /* of those between: changed at all */
    int64_t rest_up; /* and by how much */
    int64_t rest_down;
};

/* The largest or smallest number where the sum does not fit: a file may say anything. */
static int64_t diffwrite_add_up(int64_t left, int64_t right) {
    int64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? (right > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static struct range diffwrite_choose(const struct diff *diff, const struct diff_view *view,
                                     enum metric metric) {
    struct range range = {.shrunk = diff->row_count};
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
        range.rest_up = change > 0 ? diffwrite_add_up(range.rest_up, change) : range.rest_up;
        range.rest_down = change < 0 ? diffwrite_add_up(range.rest_down, change) : range.rest_down;
    }
    return range;
}

static void put_metric(struct report *report, struct diff *diff, const struct diff_view *view,
                       enum metric metric) {
    bool has_paths = diff->by == DIFF_BY_PATH;
    const struct table_column columns[] = {
        {"change", "change", TABLE_ANY, 14},
        {"before", "before", TABLE_ANY, 14},
        {"after", "after", TABLE_ANY, 14},
        {"state", "", TABLE_WORD, 4},
        {has_paths ? "path" : "name", diffwrite_by_word(diff->by),
         has_paths ? TABLE_PATH : TABLE_TEXT, 0},
    };
    struct range range;
    struct number numbers[3];
    char title[60];
    char rest[200];
    struct table table;
    diff_sort(diff, metric);
    range = diffwrite_choose(diff, view, metric);
    snprintf(title, sizeof title, "%s by %s", metric_word(metric), diffwrite_by_word(diff->by));
    table = table_open(report, metric_fact(metric), title, columns, 5);
    table.is_path_below = true;
    for (size_t i = 0; i < range.grown; i++) {
        diffwrite_put_row(&table, report, diff, &diff->rows[i], metric);
    }
    for (size_t i = diff->row_count; i-- > range.shrunk;) {
        diffwrite_put_row(&table, report, diff, &diff->rows[i], metric);
    }
    snprintf(rest, sizeof rest, "%s smaller: %s, %s", number_count(&numbers[0], range.rest),
             tabletext_spell(&numbers[1], change(metric, range.rest_up)),
             tabletext_spell(&numbers[2], change(metric, range.rest_down)));
    table.hidden = range.rest;
    table.hidden_text = rest;
    table_close(&table);
}

static void write_for_people(struct diff *diff, const struct diff_view *view) {
    struct table_document document = {0};
    struct report report = {.out = view->out,
                            .document = &document,
                            .options = view->style,
                            .model = diff->sides[1].model};
    report.options.table_depth = view->depth;
    diffwrite_put_totals(&report, diff);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        if (view->metrics[metric]) {
            put_metric(&report, diff, view, metric);
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

/* Every row here did change. */
static struct table_cell state_cell(const struct diff_row *row) {
    const char *state = diffwrite_state_of(row);
    return table_text(state != NULL ? state : "changed");
}

/* ---- JSON ---- */

static void put_json_costs(struct jsonwriter *json, const struct diff_costs costs[2]) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        jsonwriter_map(json, metric_fact(metric));
        jsonwriter_number(json, "before", costs[0].of[metric]);
        jsonwriter_number(json, "after", costs[1].of[metric]);
        jsonwriter_integer(json, "change", diff_change(costs, metric));
        jsonwriter_end_map(json);
    }
}

static void put_json_side(struct jsonwriter *json, const char *name, const struct diff_side *side) {
    jsonwriter_map(json, name);
    jsonwriter_string(json, "source", side->source);
    if (side->selected != NULL) {
        jsonwriter_string(json, "selected", side->selected);
    }
    facts_put(json, side->model, (const unsigned char[]){FACT_PROGRAM}, 1);
    jsonwriter_bool(json, "sampled", model_is_estimate(side->model));
    jsonwriter_number(json, "suppressed_bytes",
                      side->suppressions != NULL ? side->suppressions->bytes : 0);
    facts_put(json, side->model, (const unsigned char[]){FACT_DAMAGE}, 1);
    jsonwriter_end_map(json);
}

static void put_json_row(struct jsonwriter *json, const struct diff *diff,
                         const struct diff_row *row) {
    char name[4096];
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", diffwrite_name_of(diff, row, true, name, sizeof name));
    jsonwriter_string(json, "state", state_cell(row).text);
    put_json_costs(json, row->costs);
    if (diff->by == DIFF_BY_PATH) {
        struct report on = {0};
        uint32_t node = diff_path(diff, row, &on);
        tabledata_json_path(&on, json, "frames", node);
    }
    jsonwriter_end_map(json);
}

static void write_json(struct diff *diff, const struct diff_view *view) {
    struct jsonwriter *json = jsonwriter_begin(view->out, JSONWRITER_INDENTED);
    diff_sort(diff, first_metric(view));
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 1);
    put_json_side(json, "before", &diff->sides[0]);
    put_json_side(json, "after", &diff->sides[1]);
    jsonwriter_map(json, "totals");
    put_json_costs(json, diff->totals);
    jsonwriter_end_map(json);
    jsonwriter_string(json, "by", diff->by == DIFF_BY_PATH ? "path" : diffwrite_by_word(diff->by));
    jsonwriter_number(json, "same", diff->same_count);
    jsonwriter_array(json, "rows");
    for (size_t i = 0; i < diff->row_count; i++) {
        put_json_row(json, diff, &diff->rows[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

/* ---- CSV ---- */

/* state, name, three numbers a metric, path */
enum { COLUMNS = 3 + 3 * METRIC_COUNT };

static void put_csv_row(struct table *table, struct report *report, const struct diff *diff,
                        const struct diff_row *row) {
    char name[4096];
    struct table_cell cells[COLUMNS] = {
        state_cell(row), table_text(diffwrite_name_of(diff, row, true, name, sizeof name))};
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

static void write_csv(struct diff *diff, const struct diff_view *view) {
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
        snprintf(names[i], sizeof names[i], "%s_%s", metric_fact((i - 2) / 3), ends[(i - 2) % 3]);
        columns[i] =
            (struct table_column){names[i], NULL, (i - 2) % 3 == 2 ? TABLE_SIGNED : TABLE_COUNT};
    }
    table = table_open(&report, "difference", NULL, columns, COLUMNS);
    for (size_t i = 0; i < diff->row_count; i++) {
        put_csv_row(&table, &report, diff, &diff->rows[i]);
    }
    table_close(&table);
}

void diff_write(struct diff *diff, const struct diff_view *view) {
    (view->style.format == REPORT_JSON  ? write_json
     : view->style.format == REPORT_CSV ? write_csv
                                        : write_for_people)(diff, view);
}
