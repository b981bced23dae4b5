/* SPDX-License-Identifier: MIT */
/* apirows.c: endpoints that are tables of one thing of the model (rows.h), and of suppressions. */
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"

#include <stdlib.h>

int api_marks(struct api_call *call, struct error *error) {
    static const unsigned char shown[] = {MARK_TIME, MARK_THREAD, MARK_WHAT, MARK_ID,
                                          MARK_ANY_NAME};
    const struct apitable_rows rows = {.rows = &rows_marks, .shown = shown, .count = sizeof shown};
    api_command(call, "report --show-marks");
    api_sql(call, "SELECT * FROM marks");
    return apitable_rows(call, NULL, &rows, error);
}

int api_scopes(struct api_call *call, struct error *error) {
    static const unsigned char shown[] = {0, 1, 2, 3, 4};
    const struct apitable_rows rows = {
        .rows = &rows_scopes,
        .shown = shown,
        .count = rows_scopes.column_count < sizeof shown ? rows_scopes.column_count : sizeof shown};
    api_command(call, "query 'SELECT * FROM scopes'");
    api_sql(call, "SELECT * FROM scopes");
    return apitable_rows(call, NULL, &rows, error);
}

int api_threads(struct api_call *call, struct error *error) {
    static const unsigned char shown[] = {
        THREAD_ID,
        THREAD_TID,
        THREAD_NAME,
        THREAD_ALIVE,
        THREAD_STARTED,
        THREAD_ENDED,
        THREAD_ALLOCATIONS,
        THREAD_TOTAL_BYTES,
        THREAD_FREES,
        THREAD_FREED_BYTES,
        THREAD_LIVE_BYTES,
        THREAD_FOREIGN_FREES,
        THREAD_FOREIGN_BYTES,
    };
    const struct apitable_rows rows = {
        .rows = &rows_threads, .shown = shown, .count = sizeof shown};
    api_command(call, "report --show-threads");
    return apitable_rows(call, NULL, &rows, error);
}

int api_foreign(struct api_call *call, struct error *error) {
    static const unsigned char shown[] = {FOREIGN_OWNER,      FOREIGN_OWNER_NAME, FOREIGN_FREER,
                                          FOREIGN_FREER_NAME, FOREIGN_BLOCKS,     FOREIGN_BYTES};
    const struct apitable_rows rows = {
        .rows = &rows_foreign, .shown = shown, .count = sizeof shown, .sort = "bytes"};
    api_command(call, "report --show-threads");
    return apitable_rows(call, NULL, &rows, error);
}

int api_modules(struct api_call *call, struct error *error) {
    unsigned char shown[64];
    struct apitable_rows rows = {.rows = &rows_modules, .shown = shown};
    while (rows.count < rows_modules.column_count && rows.count < sizeof shown) {
        shown[rows.count] = (unsigned char)rows.count;
        rows.count++;
    }
    api_command(call, "query 'SELECT * FROM modules'");
    api_sql(call, "SELECT * FROM modules");
    return apitable_rows(call, NULL, &rows, error);
}

int api_processes(struct api_call *call, struct error *error) {
    static const unsigned char shown[] = {
        PROCESS_PID,         PROCESS_PARENT,      PROCESS_IMAGE,   PROCESS_NAME,
        PROCESS_PROGRAM,     PROCESS_COMMAND,     PROCESS_STARTED, PROCESS_ENDED,
        PROCESS_END,         PROCESS_PEAK,        PROCESS_LEAKED,  PROCESS_LEAKED_BLOCKS,
        PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES, PROCESS_FREES,   PROCESS_LOST,
        PROCESS_FILE,        PROCESS_LIGHT,
    };
    const struct apitable_rows rows = {
        .rows = &rows_processes, .shown = shown, .count = sizeof shown};
    api_command(call, "report --show-processes");
    return apitable_rows(call, NULL, &rows, error);
}

/* ---- Suppressed leaks ---- */

static const struct table_column suppressed_columns[] = {
    {"blocks", "blocks", TABLE_COUNT, 0},    {"bytes", "bytes", TABLE_BYTES, 0},
    {"paths", "call paths", TABLE_COUNT, 0}, {"pattern", "pattern", TABLE_TEXT, 0},
    {"caller", "called by", TABLE_TEXT, 0},  {"origin", "from", TABLE_TEXT, 0},
    {"line", "line", TABLE_COUNT, 0},
};
enum { SUPPRESSED_COLUMNS = sizeof suppressed_columns / sizeof suppressed_columns[0] };

/* The cells belong to the list. */
static int put_suppressed(struct api_call *call, const struct suppressions *list,
                          struct error *error) {
    struct apitable_wish wish;
    struct apitable table;
    if (apitable_wish(call, suppressed_columns, SUPPRESSED_COLUMNS, NULL, &wish, error) != 0) {
        return -1;
    }
    apitable_begin(&table, call, NULL, suppressed_columns, SUPPRESSED_COLUMNS);
    table.total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        if (item->contexts == 0 || table.total++ < wish.from || table.rows >= wish.limit) {
            continue;
        }
        apitable_row(&table,
                     (struct table_cell[]){table_number(item->blocks), table_number(item->bytes),
                                           table_number(item->contexts), table_text(item->pattern),
                                           table_text(item->caller), table_text(item->origin),
                                           table_number_if(item->line != 0, item->line)});
    }
    return apitable_end(&table, error);
}

/* Of what was never freed; metric=shutdown: of what its trees leave out. */
int api_suppressed(struct api_call *call, struct error *error) {
    const struct answer *view = call->view;
    const bool is_shutdown = call->metric == METRIC_SHUTDOWN;
    const struct model *heap =
        apimetric_all(call, view, is_shutdown ? METRIC_SHUTDOWN : METRIC_LEAKED, error);
    struct suppressions list = {0};
    struct model applied;
    int result = -1;
    if (api_param(call, "sort") != NULL) {
        return api_refuse(call, 400, error, "sort: suppressions stand in the order they apply");
    }
    if (heap != NULL && question_suppressions(view->question, view->model, &list, error) == 0 &&
        suppressions_apply(&list, heap, view->names, &applied, error) == 0) {
        suppressions_applied_free(&applied);
        api_command(call, is_shutdown ? "report --show-shutdown" : "report --show-leaked");
        result = put_suppressed(call, &list, error);
    }
    suppressions_free(&list);
    return result;
}
