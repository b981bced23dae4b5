/* SPDX-License-Identifier: MIT */
/* flat.c: the table by function: what it allocated itself, and what was allocated in it and in what
 * it called. */
#include "analyze/report/calltree.h"
#include "analyze/report/framesums.h"

/* Start-up code is shown where it allocates itself. */
static bool is_shown(const struct report *report, const struct names_frame *frame, struct cost self,
                     uint64_t most, uint64_t total) {
    double least = (double)total / 100.0 * report->options.min_percent;
    bool is_all = report->options.all_frames || !report_is_for_people(report);
    return (double)most >= least && (is_all || self.main != 0 || !pathwalk_is_startup(frame));
}

static void put_row(struct table *table, const struct names_frame *of, struct cost self,
                    struct cost inclusive, struct cost total) {
    struct names_frame frame = *of;
    frame.line = 0; /* of the function, not of one of its calls */
    frame.inlined = false;
    table_row(table, (struct table_cell[]){table_share(self.main, total.main),
                                           table_number(self.main), table_number(self.side),
                                           table_share(inclusive.main, total.main),
                                           table_number(inclusive.main), table_frame(&frame)});
}

static void put_rows(struct table *table, const struct framesums *functions, enum metric metric,
                     struct cost total) {
    const struct report *report = table->report;
    for (size_t i = 0; i < functions->count; i++) {
        const struct framesums_item *function = &functions->items[i];
        struct cost self = framesums_cost(metric, &function->self);
        struct cost inclusive = framesums_cost(metric, &function->inclusive);
        uint64_t most = inclusive.main > self.main ? inclusive.main : self.main;
        bool fits = report->options.limit == 0 || table->rows < report->options.limit;
        if (most == 0) {
            continue;
        }
        if (fits && is_shown(report, function->frame, self, most, total.main)) {
            put_row(table, function->frame, self, inclusive, total);
        } else {
            table->hidden++;
        }
    }
}

int report_flat(const struct report *report, enum metric metric) {
    const struct table_column columns[] = {
        {"self_percent", "self", TABLE_PERCENT, 0},
        {"self", metric_main_heading(metric), metric_main_kind(metric), 11},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 12},
        {"inclusive_percent", "incl.", TABLE_PERCENT, 8},
        {"inclusive", metric_main_heading(metric), metric_main_kind(metric), 11},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct framesums functions;
    struct cost total = metric_total(metric, report->model);
    struct report_title title;
    int result = framesums_make(&functions, report, FRAMESUMS_FUNCTION);
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns,
                   sizeof columns / sizeof columns[0]);
    if (result == 0) {
        framesums_sort(&functions, metric);
        put_rows(&table, &functions, metric, total);
    }
    table_close(&table);
    framesums_free(&functions);
    return result;
}
