/* SPDX-License-Identifier: MIT */
/* apicosts.c: what functions and call paths cost, as tables. Listed in routes.c. */
#include "web/server/apicosts.h"

#include "analyze/report/framesums.h"
#include "analyze/rows/pathwalk.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

static double share_of(uint64_t part, uint64_t whole) {
    return whole != 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- Functions ---- */

struct function_row {
    struct names_frame frame; /* without a line: of the function, not of one of its calls */
    uint64_t self;
    uint64_t total;
    double share; /* of the total */
    uint64_t blocks;
};

enum {
    FUNCTION_FRAME,
    FUNCTION_SELF,
    FUNCTION_TOTAL,
    FUNCTION_SHARE,
    FUNCTION_BLOCKS,
    FUNCTION_COLUMNS
};

static struct table_cell function_frame(const struct rows_of *of, const void *record) {
    (void)of;
    return table_frame(&((const struct function_row *)record)->frame);
}

#define OF(member) ROWS_FIELD(struct function_row, member)
static void function_columns(enum metric metric, struct table_column *columns) {
    const struct table_column all[FUNCTION_COLUMNS] = {
        [FUNCTION_FRAME] = {"function", "function", TABLE_FRAME, .cell = function_frame},
        [FUNCTION_SELF] = {"self", "self", metric_main_kind(metric),
                           .about = "allocated by the function itself", OF(self)},
        [FUNCTION_TOTAL] = {"total", "total", metric_main_kind(metric),
                            .about = "allocated in it and in what it called", OF(total)},
        [FUNCTION_SHARE] = {"share", "share", TABLE_PERCENT, .about = "of the total", OF(share)},
        [FUNCTION_BLOCKS] = {"blocks", metric_side_heading(metric), metric_side_kind(metric),
                             .about = "in it and in what it called", OF(blocks)},
    };
    memcpy(columns, all, sizeof all);
}
#undef OF

/* Start-up code is shown where it allocates itself. */
static bool is_shown(const struct report *report, const struct framesums_item *item,
                     enum metric metric) {
    uint64_t self = framesums_cost(metric, &item->self).main;
    return framesums_cost(metric, &item->inclusive).main != 0 &&
           (report->options.all_frames || self != 0 || !pathwalk_is_startup(item->frame));
}

/* Rows of what has a cost; the caller frees them. NULL: out of memory. */
static struct function_row *make_functions(const struct report *report, enum metric metric,
                                           size_t *count) {
    uint64_t all = metric_total(metric, report->model).main;
    enum framesums_by by = report->options.by_line ? FRAMESUMS_LINE : FRAMESUMS_FUNCTION;
    struct framesums sums;
    struct function_row *rows = NULL;
    *count = 0;
    if (framesums_make(&sums, report, by) == 0) {
        rows = calloc(sums.count + 1, sizeof *rows);
    }
    for (size_t i = 0; rows != NULL && i < sums.count; i++) {
        const struct framesums_item *item = &sums.items[i];
        if (is_shown(report, item, metric)) {
            struct function_row *row = &rows[(*count)++];
            struct cost total = framesums_cost(metric, &item->inclusive);
            *row = (struct function_row){.frame = *item->frame,
                                         .self = framesums_cost(metric, &item->self).main,
                                         .total = total.main,
                                         .share = share_of(total.main, all),
                                         .blocks = total.side};
            row->frame.line = by == FRAMESUMS_LINE ? row->frame.line : 0;
            row->frame.inlined = false;
        }
    }
    framesums_free(&sums);
    return rows;
}

/* The table of an array of rows. */
static int put_array(struct api_call *call, const struct apitable_rows *shown, const void *rows,
                     size_t size, size_t count, struct error *error) {
    const void **records = calloc(count + 1, sizeof *records);
    const struct rows_of of = rows_of_report(&call->report);
    int result;
    if (records == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        records[i] = (const char *)rows + i * size;
    }
    result = apitable_records(call, NULL, shown, &of, records, count, error);
    free(records);
    return result;
}

int api_functions(struct api_call *call, struct error *error) {
    static const unsigned char places[] = {FUNCTION_FRAME, FUNCTION_SELF, FUNCTION_TOTAL,
                                           FUNCTION_SHARE, FUNCTION_BLOCKS};
    struct table_column columns[FUNCTION_COLUMNS];
    const struct rows rows = {.columns = columns, .column_count = FUNCTION_COLUMNS};
    const struct apitable_rows shown = {
        .rows = &rows, .shown = places, .count = FUNCTION_COLUMNS, .sort = "total"};
    struct report report = call->report;
    struct function_row *functions;
    size_t count;
    int result;
    report.model = apimetric_model(call, call->view, error);
    if (report.model == NULL) {
        return -1;
    }
    function_columns(call->metric, columns);
    functions = make_functions(&report, call->metric, &count);
    if (functions == NULL) {
        return out_of_memory(error);
    }
    result = put_array(call, &shown, functions, sizeof *functions, count, error);
    free(functions);
    api_command(call, "report %s --flat", apimetric_option(call));
    return result;
}

/* ---- Call paths ---- */

static const unsigned char path_places[] = {
    CONTEXT_HASH,        CONTEXT_PATH,       CONTEXT_CLASS,       CONTEXT_POOL,
    CONTEXT_PEAK_BYTES,  CONTEXT_LIVE_BYTES, CONTEXT_LIVE_BLOCKS, CONTEXT_TOTAL_BYTES,
    CONTEXT_ALLOCATIONS, CONTEXT_FREES,      CONTEXT_TEMPORARY,   CONTEXT_AVERAGE,
    CONTEXT_FIRST,       CONTEXT_LAST,       CONTEXT_LIFETIME,
};

/* In reports a table has one of these columns, and here all stand side by side. */
static void path_columns(struct table_column *columns) {
    static const struct heading {
        unsigned char place;
        const char *heading;
    } headings[] = {
        {CONTEXT_CLASS, "class"},        {CONTEXT_POOL, "pool"},
        {CONTEXT_PEAK_BYTES, "peak"},    {CONTEXT_LIVE_BYTES, "live"},
        {CONTEXT_LIVE_BLOCKS, "blocks"}, {CONTEXT_TOTAL_BYTES, "allocated"},
        {CONTEXT_FREES, "frees"},        {CONTEXT_TEMPORARY, "temporary"},
    };
    memcpy(columns, rows_contexts.columns, CONTEXT_COLUMNS * sizeof *columns);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        columns[headings[i].place].heading = headings[i].heading;
    }
    columns[CONTEXT_CLASS].name = "class";
}

static const char *column_of(enum metric metric) {
    static const char *const columns[METRIC_ALL] = {
        [METRIC_MAXIMUM] = "peak_bytes",     [METRIC_LEAKED] = "live_bytes",
        [METRIC_CUMULATIVE] = "total_bytes", [METRIC_ALLOCATIONS] = "allocations",
        [METRIC_TEMPORARY] = "temporary",    [METRIC_SHUTDOWN] = "live_bytes",
        [METRIC_SHORT] = "temporary",
    };
    return columns[metric];
}

/* Those that bear some of the metric; the caller frees the array. NULL: out of memory. */
static const void **list_paths(const struct model *model, enum metric metric, size_t *count) {
    const void **records = calloc(model->context_count + 1, sizeof *records);
    *count = 0;
    for (size_t i = 0; records != NULL && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (context->class == MODEL_HEAP && metric_cost(metric, context).main != 0) {
            records[(*count)++] = context;
        }
    }
    return records;
}

int api_paths(struct api_call *call, struct error *error) {
    struct table_column columns[CONTEXT_COLUMNS];
    const struct rows rows = {.columns = columns, .column_count = CONTEXT_COLUMNS};
    const struct apitable_rows shown = {.rows = &rows,
                                        .shown = path_places,
                                        .count = sizeof path_places,
                                        .sort = column_of(call->metric)};
    const struct model *model = apimetric_model(call, call->view, error);
    struct rows_of of = rows_of_report(&call->report);
    const void **records;
    size_t count;
    int result;
    if (model == NULL) {
        return -1;
    }
    of.model = model;
    of.whole = call->view->whole;
    path_columns(columns);
    records = list_paths(model, call->metric, &count);
    if (records == NULL) {
        return out_of_memory(error);
    }
    result = apitable_records(call, NULL, &shown, &of, records, count, error);
    free(records);
    api_command(call, "report %s --paths", apimetric_option(call));
    return result;
}
