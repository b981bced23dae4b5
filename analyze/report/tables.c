/* SPDX-License-Identifier: MIT */
/* tables.c: the reports that show rows of one thing: contexts, single blocks, threads, marks,
 * suppressions. */
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/rows.h"
#include "analyze/rows/table.h"

#include <stdlib.h>

/* ---- All contexts, for programs ---- */

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

/* ---- Contexts of the heap ---- */

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

/* ---- Single blocks ---- */

static const char *title_of(enum detail_order order) {
    return order == DETAIL_LARGEST  ? "Blocks: the largest"
           : order == DETAIL_OLDEST ? "Blocks: those that lived longest"
                                    : "Blocks: the first";
}

int report_blocks(const struct report *report) {
    static const unsigned char shown[] = {
        ALLOCATION_ADDRESS,      ALLOCATION_SIZE, ALLOCATION_SLACK,  ALLOCATION_BORN,
        ALLOCATION_FREED,        ALLOCATION_AGE,  ALLOCATION_THREAD, ALLOCATION_FREED_BY,
        ALLOCATION_CHAIN_LENGTH, ALLOCATION_HASH, ALLOCATION_PATH,
    };
    const struct detail *detail = report->detail;
    struct rows_view view = rows_view(report, &rows_allocations, shown, sizeof shown);
    struct table table =
        table_open(report, "blocks", title_of(detail->wish.order), view.columns, view.count);
    for (size_t i = 0; i < detail->block_count; i++) {
        rows_put(&table, &view, &detail->blocks[i]);
    }
    table.hidden = detail->block_total - detail->block_count;
    table_close(&table);
    return 0;
}

/* ---- Threads, and who freed whose blocks ---- */

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

/* ---- Marks ---- */

void report_marks(const struct report *report) {
    static const unsigned char shown[] = {MARK_TIME, MARK_THREAD, MARK_WHAT, MARK_ID,
                                          MARK_ANY_NAME};
    struct rows_view view = rows_view(report, &rows_marks, shown, sizeof shown);
    struct table table = table_open(report, "marks", "Marks", view.columns, view.count);
    rows_put_all(&table, &view);
    table.hidden = report->model->mark_total - table.rows;
    table_close(&table);
}

/* ---- Which leaks were left out, and because of what ---- */

static const char *spell_pattern(const struct suppression *item, char *buffer, size_t size) {
    snprintf(buffer, size, "%s%s%s", item->pattern, item->caller != NULL ? " called by " : "",
             item->caller != NULL ? item->caller : "");
    return buffer;
}

static const char *spell_origin(const struct suppression *item, char *buffer, size_t size) {
    snprintf(buffer, size, item->line != 0 ? "%s:%u" : "%s", item->origin, item->line);
    return buffer;
}

void report_suppressed(const struct report *report) {
    static const struct table_column columns[] = {
        {"blocks", "blocks", TABLE_COUNT, 0},    {"bytes", "bytes", TABLE_BYTES, 0},
        {"paths", "call paths", TABLE_COUNT, 0}, {"pattern", "pattern", TABLE_TEXT, 32},
        {"origin", "from", TABLE_TEXT, 0},
    };
    const struct suppressions *list = report->suppressions;
    struct number bytes;
    struct number blocks;
    struct table table;
    if (list->blocks == 0 && report_is_for_people(report)) {
        return;
    }
    table =
        table_open(report, "suppressed", "Suppressed: leaks that are left out above", columns, 5);
    table_note(&table, "%s in %s.", number_bytes(&bytes, list->bytes),
               number_items(&blocks, list->blocks, "block"));
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        char pattern[512];
        char origin[512];
        if (item->contexts != 0) {
            table_row(&table, (struct table_cell[]){
                                  table_number(item->blocks), table_number(item->bytes),
                                  table_number(item->contexts),
                                  table_text(spell_pattern(item, pattern, sizeof pattern)),
                                  table_text(spell_origin(item, origin, sizeof origin))});
        }
    }
    table_close(&table);
}
