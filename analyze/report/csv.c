/* SPDX-License-Identifier: MIT */
/* csv.c: a row for each context, of all classes. */
#include "analyze/report/reports.h"
#include "analyze/rows/table.h"

int report_csv(const struct report *report) {
    static const struct table_column columns[] = {
        {"id", NULL, TABLE_COUNT},          {"hash", NULL, TABLE_HASH},
        {"class", NULL, TABLE_TEXT},        {"live_bytes", NULL, TABLE_BYTES},
        {"live_blocks", NULL, TABLE_COUNT}, {"peak_bytes", NULL, TABLE_BYTES},
        {"total_bytes", NULL, TABLE_BYTES}, {"allocations", NULL, TABLE_COUNT},
        {"frees", NULL, TABLE_COUNT},       {"temporary", NULL, TABLE_COUNT},
        {"path", NULL, TABLE_PATH},
    };
    const struct model *model = report->model;
    struct report bounded = *report;
    struct table table;
    bounded.options.format = REPORT_CSV;
    bounded.options.path_depth = report->options.depth;
    table = table_open(&bounded, "contexts", "Contexts", columns, 11);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        table_row(&table,
                  (struct table_cell[]){
                      table_number(context->id), table_number(model_hash(model, context->id)),
                      table_text(model_class_name(model, context)),
                      table_number(context->live_bytes), table_number(context->live_blocks),
                      table_number(context->peak_bytes), table_number(context->total_bytes),
                      table_number(context->allocations), table_number(context->frees),
                      table_number(context->temporary), table_path(context->path)});
    }
    table_close(&table);
    return 0;
}
