/* SPDX-License-Identifier: MIT */
/* marktable.c: what the program said of itself while it ran. */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"

void report_marks(const struct report *report) {
    static const unsigned char shown[] = {MARK_TIME, MARK_THREAD, MARK_WHAT, MARK_ID,
                                          MARK_ANY_NAME};
    struct rows_view view = rows_view(report, &rows_marks, shown, sizeof shown);
    struct table table = table_open(report, "marks", "Marks", view.columns, view.count);
    rows_put_all(&table, &view);
    table.hidden = report->model->mark_total - table.rows;
    table_close(&table);
}
