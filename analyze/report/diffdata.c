/* SPDX-License-Identifier: MIT */
/* diffdata.c: a difference as JSON and CSV: every row and every metric, without threshold. */
#include "analyze/report/diffrow.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/table.h"

#include <stdio.h>

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

static void put_costs(struct jsonwriter *json, const struct diff_costs costs[2]) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        jsonwriter_map(json, diffrow_metric(metric));
        jsonwriter_number(json, "before", costs[0].of[metric]);
        jsonwriter_number(json, "after", costs[1].of[metric]);
        jsonwriter_integer(json, "change", diff_change(costs, metric));
        jsonwriter_end_map(json);
    }
}

static void put_side(struct jsonwriter *json, const char *name, const struct diff_side *side) {
    jsonwriter_map(json, name);
    jsonwriter_string(json, "source", side->source);
    jsonwriter_string(json, "executable", side->model->header.executable);
    jsonwriter_bool(json, "sampled", side->model->recording.sampled);
    jsonwriter_number(json, "suppressed_bytes",
                      side->suppressions != NULL ? side->suppressions->bytes : 0);
    jsonwriter_string(json, "damage", side->model->damage[0] != '\0' ? side->model->damage : NULL);
    jsonwriter_end_map(json);
}

static void put_row(struct jsonwriter *json, const struct diff *diff, const struct diff_row *row) {
    char name[4096];
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", diffrow_name(diff, row, true, name, sizeof name));
    jsonwriter_string(json, "state", state_of(row));
    put_costs(json, row->costs);
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
    put_side(json, "before", &diff->sides[0]);
    put_side(json, "after", &diff->sides[1]);
    jsonwriter_map(json, "totals");
    put_costs(json, diff->totals);
    jsonwriter_end_map(json);
    jsonwriter_string(json, "by", diff->by == DIFF_BY_PATH ? "path" : diffrow_by(diff->by));
    jsonwriter_number(json, "same", diff->same_count);
    jsonwriter_array(json, "rows");
    for (size_t i = 0; i < diff->row_count; i++) {
        put_row(json, diff, &diff->rows[i]);
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
