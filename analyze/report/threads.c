/* SPDX-License-Identifier: MIT */
/* threads.c: the table of threads, and who freed whose blocks. */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"

#include <stdlib.h>

static void put_threads(const struct report *report) {
    static const unsigned char shown[] = {
        THREAD_ID,          THREAD_TID_TEXT,      THREAD_ALLOCATIONS,
        THREAD_TOTAL_BYTES, THREAD_FREES,         THREAD_FREED_BYTES,
        THREAD_LIVE_BYTES,  THREAD_FOREIGN_FREES, THREAD_FOREIGN_BYTES,
        THREAD_NAME,        THREAD_LONG_NAME,
    };
    enum { LIVE = 6 };
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_threads, shown, sizeof shown);
    struct table table;
    all.options.limit = 0;
    view.columns[LIVE].heading = report_held(report->model);
    table = table_open(&all, "threads", "Threads", view.columns, view.count);
    rows_put_all(&table, &view);
    table_close(&table);
}

static int most_first(const void *left, const void *right) {
    const struct model_foreign *a = *(const struct model_foreign *const *)left;
    const struct model_foreign *b = *(const struct model_foreign *const *)right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    if (a->freer != b->freer) {
        return a->freer < b->freer ? -1 : 1;
    }
    return (a->owner > b->owner) - (a->owner < b->owner);
}

int report_threads(const struct report *report) {
    static const unsigned char shown[] = {FOREIGN_OWNER,      FOREIGN_OWNER_NAME, FOREIGN_FREER,
                                          FOREIGN_FREER_NAME, FOREIGN_BLOCKS,     FOREIGN_BYTES};
    struct rows_view view = rows_view(report, &rows_foreign, shown, sizeof shown);
    size_t count = report->model->foreign_count;
    const void **foreign;
    struct table table;
    put_threads(report);
    if (count == 0 && report_is_for_people(report)) {
        return 0;
    }
    foreign = rows_sorted(&view, most_first, &count);
    if (foreign == NULL) {
        return -1;
    }
    table = table_open(report, "cross-thread-frees", "Who freed whose blocks", view.columns,
                       view.count);
    rows_put_sorted(&table, &view, foreign, count);
    table_close(&table);
    free(foreign);
    return 0;
}
