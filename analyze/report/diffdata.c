/* SPDX-License-Identifier: MIT */
/* diffdata.c: a difference as JSON and CSV: every row and every metric, without threshold. */
#include "analyze/report/csvtext.h"
#include "analyze/report/diffrow.h"
#include "analyze/rows/jsonwriter.h"

#include <inttypes.h>

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

static void put_frame(struct jsonwriter *json, const struct names_frame *frame) {
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "function", frame->function);
    jsonwriter_string(json, "file", frame->file);
    jsonwriter_number(json, "line", frame->line);
    jsonwriter_string(json, "module", frame->module);
    jsonwriter_number(json, "offset", frame->offset);
    jsonwriter_bool(json, "inlined", frame->inlined);
    jsonwriter_end_map(json);
}

static void put_frames(struct jsonwriter *json, const struct diff *diff,
                       const struct diff_row *row) {
    struct report on = {0};
    struct calltree_walk walk = calltree_walk(&on, diff_path(diff, row, &on));
    jsonwriter_array(json, "frames");
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        put_frame(json, walk.frame);
    }
    jsonwriter_end_array(json);
}

static void put_row(struct jsonwriter *json, const struct diff *diff, const struct diff_row *row) {
    char name[4096];
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", diffrow_name(diff, row, true, name, sizeof name));
    jsonwriter_string(json, "state", state_of(row));
    put_costs(json, row->costs);
    if (diff->by == DIFF_BY_PATH) {
        put_frames(json, diff, row);
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

static void put_csv_row(FILE *out, const struct diff *diff, const struct diff_row *row) {
    char name[4096];
    fprintf(out, "%s,", state_of(row));
    csvtext_put(out, diffrow_name(diff, row, true, name, sizeof name));
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRId64, row->costs[0].of[metric],
                row->costs[1].of[metric], diff_change(row->costs, metric));
    }
    fputc(',', out);
    if (diff->by == DIFF_BY_PATH) {
        struct report on = {0};
        csvtext_put_path(out, calltree_walk(&on, diff_path(diff, row, &on)), 0);
    } else {
        csvtext_put(out, "");
    }
    fputs("\r\n", out);
}

void diff_csv(struct diff *diff, const struct diff_view *view) {
    diff_sort(diff, first_metric(view));
    fputs("state,name", view->out);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        const char *name = diffrow_metric(metric);
        fprintf(view->out, ",%s_before,%s_after,%s_change", name, name, name);
    }
    fputs(",path\r\n", view->out);
    for (size_t i = 0; i < diff->row_count; i++) {
        put_csv_row(view->out, diff, &diff->rows[i]);
    }
}
