/* SPDX-License-Identifier: MIT */
/* callers.c: who calls some functions, and what they call, each with its cost: the first level of
 * the trees around them (calltree_around()). */
#include "analyze/report/calltree.h"
#include "analyze/rows/table.h"

static const struct names_frame nobody = {.function = "(nobody)", .module = ""};
static const struct names_frame itself = {.function = "(itself)", .module = ""};

static void put_side(struct table *table, const struct names_frame *of, struct cost cost,
                     struct cost total) {
    size_t limit = table->report->options.limit != 0 ? table->report->options.limit : SIZE_MAX;
    double least = (double)total.main / 100 * table->report->options.min_percent;
    struct names_frame frame = *of;
    if (cost.main == 0) {
        return;
    }
    if (table->rows >= limit || (double)cost.main < least) {
        table->hidden++;
        return;
    }
    frame.line = 0;
    frame.inlined = false;
    table_row(table,
              (struct table_cell[]){table_share(cost.main, total.main), table_number(cost.main),
                                    table_number(cost.side), table_frame(&frame)});
}

/* `none`: what stands for the paths that end at the functions. */
static void put_sides(const struct report *report, enum metric metric, const struct calltree *tree,
                      const char *name, const char *title, const struct names_frame *none) {
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct table table = table_open(report, name, title, columns, 4);
    const struct call *root = &tree->calls[0];
    bool is_none_put = false;
    for (uint32_t at = root->first_child; at != 0; at = tree->calls[at].next) {
        const struct call *call = &tree->calls[at];
        if (!is_none_put && root->self.main >= call->cost.main) {
            put_side(&table, none, root->self, root->cost);
            is_none_put = true;
        }
        put_side(&table, call->frame, call->cost, root->cost);
    }
    if (!is_none_put) {
        put_side(&table, none, root->self, root->cost);
    }
    table_close(&table);
}

static void put_total(const struct report *report, enum metric metric, const struct callers_of *of,
                      struct cost cost) {
    const struct table_column columns[] = {
        {"function", "function", TABLE_TEXT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
    };
    struct report_title title;
    struct table table =
        table_open_record(report, "function", report_title(report, metric, &title), columns, 4);
    if (cost.main == 0) {
        table_note(&table, "No call path with such a cost goes through it.%s",
                   of->function != NULL ? " Give a whole name, or /REGEX/ to match a part of one."
                                        : "");
    }
    table_row(&table, (struct table_cell[]){
                          table_text(of->text),
                          table_share(cost.main, metric_total(metric, report->model).main),
                          table_number(cost.main), table_number(cost.side)});
    table_close(&table);
}

int report_callers(const struct report *report, enum metric metric, const struct callers_of *of) {
    struct report around = *report;
    struct calltree callers = {0};
    struct calltree callees = {0};
    int result;
    around.options.depth = 1;
    around.options.by_line = false;
    result = calltree_around(&callers, &callees, &around, metric, of);
    if (result == 0) {
        put_total(report, metric, of, callers.calls[0].cost);
        put_sides(report, metric, &callers, "callers", "Called by", &nobody);
        put_sides(report, metric, &callees, "callees", "Calls", &itself);
    }
    calltree_free(&callers);
    calltree_free(&callees);
    return result;
}
