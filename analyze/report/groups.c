/* SPDX-License-Identifier: MIT */
/*
 * groups.c: the table of contexts: what each allocated and holds, and, of a recording, when it
 * allocated first and last and how long its blocks lived.
 */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"

#include <stdlib.h>

static bool is_of_heap(const void *record) {
    return ((const struct model_context *)record)->class == MODEL_HEAP;
}

static int dearest_first(const void *left, const void *right) {
    const struct model_context *a = *(const struct model_context *const *)left;
    const struct model_context *b = *(const struct model_context *const *)right;
    if (a->total_bytes != b->total_bytes) {
        return a->total_bytes < b->total_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

int report_groups(const struct report *report) {
    static const unsigned char shown[] = {
        CONTEXT_ALLOCATIONS, CONTEXT_TOTAL_BYTES, CONTEXT_AVERAGE,   CONTEXT_LIVE_BLOCKS,
        CONTEXT_LIVE_BYTES,  CONTEXT_FREES,       CONTEXT_TEMPORARY, CONTEXT_FIRST,
        CONTEXT_LAST,        CONTEXT_LIFETIME,    CONTEXT_HASH,      CONTEXT_PATH,
    };
    enum { LIVE_BLOCKS = 3, FIRST = 7, LIFETIME = 9 };
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    size_t count = 0;
    const void **groups;
    struct table table;
    view.is_wanted = is_of_heap;
    view.columns[LIVE_BLOCKS].heading = report_held(report->model);
    for (size_t i = FIRST; i <= LIFETIME && report->detail == NULL; i++) {
        view.columns[i].heading = NULL;
    }
    groups = rows_sorted(&view, dearest_first, &count);
    if (groups == NULL) {
        return -1;
    }
    table =
        table_open(report, "groups", "Groups: blocks of one call path", view.columns, view.count);
    rows_put_sorted(&table, &view, groups, count);
    table_close(&table);
    free(groups);
    return 0;
}
