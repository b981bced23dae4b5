/* SPDX-License-Identifier: MIT */
/* treetable.c: a tree of calls for programs: each call a row, callers before what they call. */
#include "analyze/report/calltree.h"
#include "analyze/report/treetext.h"
#include "analyze/rows/table.h"

static const struct names_frame unknown = {.module = ""};

static void put_call(struct table *table, const struct call *call, uint64_t depth,
                     struct cost total) {
    struct names_frame frame = call->frame != NULL ? *call->frame : unknown;
    frame.line = call->first_line;
    table_row(table,
              (struct table_cell[]){table_number(depth), table_share(call->cost.main, total.main),
                                    table_number(call->cost.main), table_number(call->cost.side),
                                    table_number(call->self.main), table_frame(&frame)});
}

/* Depth first, without recursion. */
static void put_calls(struct table *table, const struct calltree *tree, struct cost total) {
    const struct report_options *options = &table->report->options;
    double least = (double)total.main / 100.0 * options->min_percent;
    uint32_t at = tree->calls[0].first_child;
    uint64_t depth = 0;
    while (at != 0) {
        const struct call *call = &tree->calls[at];
        bool is_shown = (double)call->cost.main >= least;
        bool is_deep = options->depth != 0 && depth + 1 >= options->depth;
        if (is_shown) {
            put_call(table, call, depth, total);
        } else {
            table->hidden++;
        }
        if (is_shown && !is_deep && call->first_child != 0) {
            at = call->first_child;
            depth++;
            continue;
        }
        while (at != 0 && tree->calls[at].next == 0) {
            at = tree->calls[at].parent;
            depth -= at != 0;
        }
        at = tree->calls[at].next;
    }
}

void treetable_put(const struct report *report, enum metric metric, const struct calltree *tree) {
    const struct table_column columns[] = {
        {"depth", "depth", TABLE_COUNT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
        {"self", "self", metric_main_kind(metric), 0},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct report_title title;
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns, 6);
    table_note(&table, report->options.bottom_up ? "bottom-up" : "top-down");
    put_calls(&table, tree, metric_total(metric, report->model));
    table_close(&table);
}
