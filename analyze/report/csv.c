/* SPDX-License-Identifier: MIT */
/* csv.c: a row for each context, of all classes. */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"

int report_csv(const struct report *report) {
    static const unsigned char shown[] = {
        CONTEXT_ID,          CONTEXT_HASH,       CONTEXT_CLASS_NAME,  CONTEXT_LIVE_BYTES,
        CONTEXT_LIVE_BLOCKS, CONTEXT_PEAK_BYTES, CONTEXT_TOTAL_BYTES, CONTEXT_ALLOCATIONS,
        CONTEXT_FREES,       CONTEXT_TEMPORARY,  CONTEXT_PATH,
    };
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    struct report all = *report;
    struct table table;
    all.options.format = REPORT_CSV;
    all.options.limit = 0;
    all.options.path_depth = report->options.depth;
    table = table_open(&all, "contexts", "Contexts", view.columns, view.count);
    rows_put_all(&table, &view);
    table_close(&table);
    return 0;
}
