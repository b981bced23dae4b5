/* SPDX-License-Identifier: MIT */
/* apicosts.c: what functions and call paths cost, as tables. Listed in routes.c. */
#include "web/server/apilist.h"

#include "analyze/base/numbermap.h"
#include "analyze/report/diff.h"
#include "analyze/report/framesums.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/window/series.h"
#include "web/server/apidetail.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"

#include <stdlib.h>
#include <string.h>

/* ---- Functions ---- */

enum { OFFSET_BITS = 40 /* of a module: names have numbers below that */ };

struct function_row {
    struct names_frame frame; /* without a line: of the function, not of one of its calls */
    uint64_t self;
    uint64_t total;
    double share; /* of the total */
    uint64_t side;
    uint64_t base_self; /* of a difference: the other side */
    uint64_t base_total;
    int64_t delta; /* of the totals */
};

enum {
    FUNCTION_FRAME,
    FUNCTION_SELF,
    FUNCTION_TOTAL,
    FUNCTION_SHARE,
    FUNCTION_SIDE,
    FUNCTION_COLUMNS, /* and in a difference: */
    FUNCTION_BASE_SELF = FUNCTION_COLUMNS,
    FUNCTION_BASE_TOTAL,
    FUNCTION_DELTA,
    FUNCTION_ALL
};

static struct table_cell function_frame(const struct rows_of *of, const void *record) {
    (void)of;
    return table_frame(&((const struct function_row *)record)->frame);
}

#define OF(member) ROWS_FIELD(struct function_row, member)
static void function_columns(enum metric metric, struct table_column *columns) {
    const struct table_column all[FUNCTION_ALL] = {
        [FUNCTION_FRAME] = {"function", "function", TABLE_FRAME, .cell = function_frame},
        [FUNCTION_SELF] = {"self", "self", metric_main_kind(metric),
                           .about = "allocated by the function itself", OF(self)},
        [FUNCTION_TOTAL] = {"total", "total", metric_main_kind(metric),
                            .about = "allocated in it and in what it called", OF(total)},
        [FUNCTION_SHARE] = {"share", "share", TABLE_PERCENT, .about = "of the total", OF(share)},
        [FUNCTION_SIDE] = {"side", metric_side_heading(metric), metric_side_kind(metric),
                           .about = "in it and in what it called", OF(side)},
        [FUNCTION_BASE_SELF] = {"base_self", "self before", metric_main_kind(metric),
                                OF(base_self)},
        [FUNCTION_BASE_TOTAL] = {"base_total", "total before", metric_main_kind(metric),
                                 OF(base_total)},
        [FUNCTION_DELTA] = {"delta", "change", TABLE_SIGNED, .about = "of the total", OF(delta)},
    };
    memcpy(columns, all, sizeof all);
}
#undef OF

/* Start-up code is shown where it allocates itself. */
static bool costs_is_shown(const struct report *report, const struct framesums_item *item,
                           enum metric metric) {
    uint64_t self = framesums_cost(metric, &item->self).main;
    return framesums_cost(metric, &item->inclusive).main != 0 &&
           (report->options.all_frames || self != 0 || !pathwalk_is_startup(item->frame));
}

/* All unnamed functions of a module are one to diff_function(): here each has a row of its own, and
 * is matched by where it is. */
static uint64_t row_key(struct diff_functions *functions, const struct names_frame *frame) {
    uint64_t function = diff_function(functions, frame);
    return frame->function != NULL ? function : (function << OFFSET_BITS) + frame->offset;
}

/* The rows of both sides, matched by their functions; `earlier` may be in any order. */
static void match_functions(struct api_call *call, const struct function_row *earlier,
                            size_t earlier_count, struct function_row *rows, size_t *count) {
    struct diff_side sides[2];
    struct diff_functions *functions;
    struct numbermap places = {0}; /* by row_key(): the row + 1 */
    apimetric_sides(call, sides);
    functions = diff_functions_open(sides);
    for (size_t i = 0; i < *count; i++) {
        numbermap_set(&places, row_key(functions, &rows[i].frame), (void *)(i + 1));
    }
    for (size_t i = 0; i < earlier_count; i++) {
        uint64_t function = row_key(functions, &earlier[i].frame);
        size_t place = (size_t)(uintptr_t)numbermap_get(&places, function);
        if (place == 0) {
            rows[*count] = (struct function_row){.frame = earlier[i].frame};
            place = ++*count;
            numbermap_set(&places, function, (void *)place);
        }
        rows[place - 1].base_self += earlier[i].self;
        rows[place - 1].base_total += earlier[i].total;
    }
    for (size_t i = 0; i < *count; i++) {
        rows[i].delta = (int64_t)(rows[i].total - rows[i].base_total);
    }
}

/* Rows of one side: of what has a cost. */
static struct function_row *functions_of(struct api_call *call, const struct answer *view,
                                         size_t *count) {
    enum metric metric = call->metric;
    enum framesums_by by =
        call->report.options.by_line && call->base == NULL ? FRAMESUMS_LINE : FRAMESUMS_FUNCTION;
    struct report report = call->report;
    struct framesums sums;
    struct function_row *rows;
    uint64_t all;
    report.names = view->names;
    report.model = apimetric_model(call, view);
    sums = framesums_make(&report, by);
    rows = job_array(sums.count, sizeof *rows);
    all = metric_total(metric, report.model).main;
    *count = 0;
    for (size_t i = 0; i < sums.count; i++) {
        const struct framesums_item *item = &sums.items[i];
        if (costs_is_shown(&report, item, metric)) {
            struct function_row *row = &rows[(*count)++];
            struct cost total = framesums_cost(metric, &item->inclusive);
            *row = (struct function_row){.frame = *item->frame,
                                         .self = framesums_cost(metric, &item->self).main,
                                         .total = total.main,
                                         .share = table_share(total.main, all).real,
                                         .side = total.side};
            row->frame.line = by == FRAMESUMS_LINE ? row->frame.line : 0;
            row->frame.inlined = false;
        }
    }
    return rows;
}

void api_functions(struct api_call *call) {
    struct table_column columns[FUNCTION_ALL];
    const struct rows rows = {.columns = columns, .column_count = FUNCTION_ALL};
    const struct apitable_rows shown = {.rows = &rows,
                                        .count =
                                            call->base != NULL ? FUNCTION_ALL : FUNCTION_COLUMNS,
                                        .sort = call->base != NULL ? "delta" : "total"};
    size_t count;
    struct function_row *functions = functions_of(call, call->view, &count);
    if (call->base != NULL) {
        size_t room = count;
        size_t earlier_count;
        const struct function_row *earlier = functions_of(call, call->base, &earlier_count);
        job_reserve(&functions, &room, count + earlier_count, sizeof *functions);
        match_functions(call, earlier, earlier_count, functions, &count);
    }
    function_columns(call->metric, columns);
    apitable_array(call, &shown, functions, sizeof *functions, count);
    if (call->base != NULL) {
        apimetric_diff_command(call, "function");
    } else {
        api_command(call, "report %s --flat", apimetric_option(call));
    }
}

/* ---- Call paths ---- */

const unsigned char apipaths_shown[APIPATHS_SHOWN] = {
    CONTEXT_HASH,        CONTEXT_PATH,       CONTEXT_CLASS,       CONTEXT_POOL,
    CONTEXT_PEAK_BYTES,  CONTEXT_LIVE_BYTES, CONTEXT_LIVE_BLOCKS, CONTEXT_TOTAL_BYTES,
    CONTEXT_ALLOCATIONS, CONTEXT_FREES,      CONTEXT_TEMPORARY,   CONTEXT_AVERAGE,
    CONTEXT_FIRST,       CONTEXT_LAST,       CONTEXT_LIFETIME,
};

/* In reports a table has one of these columns, and here all stand side by side. */
void apipaths_columns(struct table_column *columns) {
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

static void put_numbers(struct jsonwriter *json, const char *name, const uint64_t *numbers,
                        size_t count) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < count; i++) {
        jsonwriter_number(json, NULL, numbers[i]);
    }
    jsonwriter_end_array(json);
}

/* What they held over time; of the job. */
static const struct series *series_of(struct api_call *call, const uint32_t *ids, size_t count,
                                      size_t points) {
    const struct answer *view = call->view;
    struct series *series = job_alloc(sizeof *series);
    struct error error;
    job_check(series_make(series, view->whole, view->source->parts, view->model->from_ns,
                          view->model->to_ns, ids, count, points, &call->replay, &error),
              &error);
    return series;
}

/* Each path in one array. */
static void put_graphs(struct api_call *call, const void *const *records, size_t count) {
    enum { POINTS = 48, PATHS = 1000 };
    size_t rows = count < PATHS ? count : PATHS;
    uint32_t *ids = job_array(rows, sizeof *ids);
    const struct series *series;
    for (size_t i = 0; i < rows; i++) {
        ids[i] = ((const struct model_context *)records[i])->id;
    }
    series = series_of(call, ids, rows, POINTS);
    jsonwriter_map(call->json, "graphs");
    put_numbers(call->json, "points", series->times, series->points);
    jsonwriter_array(call->json, "series");
    for (size_t i = 0; i < rows && series->points != 0; i++) {
        put_numbers(call->json, NULL, &series->live[i * series->points], series->points);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
}

/* How many are left out, and what the others held over time. */
static void put_beside_paths(struct api_call *call, const void *const *records, size_t count) {
    const struct model *model = apimetric_model(call, call->view);
    uint64_t without = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        without += context->class == MODEL_HEAP && metric_cost(call->metric, context).main == 0;
    }
    jsonwriter_number(call->json, "without_cost", without);
    if (api_flag(call, "graphs")) {
        put_graphs(call, records, count);
    }
}

/* ---- What changed of them ---- */

struct changed_path {
    const struct diff *diff;
    const struct diff_row *row;
    enum metric metric;
};

static const struct model_context *costs_context_of(const struct changed_path *path, size_t side) {
    uint32_t id = path->row->contexts[side];
    return id != 0 ? model_find(path->diff->sides[side].model, id) : NULL;
}

static struct table_cell changed_hash(const struct rows_of *of, const void *record) {
    const struct changed_path *path = record;
    size_t side = path->row->contexts[1] != 0 ? 1 : 0;
    (void)of;
    return table_number_if(path->row->contexts[side] != 0,
                           model_hash(path->diff->sides[side].model, path->row->contexts[side]));
}

static struct table_cell changed_path(const struct rows_of *of, const void *record) {
    const struct changed_path *path = record;
    const struct model_context *later = costs_context_of(path, 1);
    const struct model_context *earlier = costs_context_of(path, 0);
    (void)of;
    return later != NULL     ? table_path(later->path)
           : earlier != NULL ? apitable_base_path(earlier->path)
                             : table_none();
}

ROWS_CELL(changed_state, struct changed_path, path,
          table_text(!path->row->present[0]   ? "new"
                     : !path->row->present[1] ? "gone"
                                              : "changed"))
ROWS_CELL(changed_now, struct changed_path, path,
          table_number(path->row->costs[1].of[path->metric]))
ROWS_CELL(changed_base, struct changed_path, path,
          table_number(path->row->costs[0].of[path->metric]))
ROWS_CELL(changed_delta, struct changed_path, path,
          table_number((uint64_t)diff_change(path->row->costs, path->metric)))

static void put_changes(struct api_call *call) {
    enum metric metric = call->metric;
    const struct table_column columns[] = {
        {"hash", "hash", TABLE_HASH, .cell = changed_hash},
        {"path", "call path", TABLE_PATH, .cell = changed_path},
        {"state", "state", TABLE_WORD, .about = "new, gone or changed", .cell = changed_state},
        {metric_fact(metric), "after", metric_main_kind(metric), .cell = changed_now},
        {"base", "before", metric_main_kind(metric), .cell = changed_base},
        {"delta", "change", TABLE_SIGNED, .cell = changed_delta},
    };
    const struct rows rows = {ROWS_COLUMNS(columns)};
    const struct apitable_rows shown = {.rows = &rows, .count = rows.column_count, .sort = "delta"};
    const struct diff_options options = {.by = DIFF_BY_PATH, .line_tolerance = DIFF_ANY_LINE};
    struct diff_side sides[2];
    struct changed_path *paths;
    struct diff diff;
    size_t count = 0;
    if (metric >= METRIC_COUNT) {
        api_refuse(call, 400, "metric %s has no difference by call path", metric_name(metric));
    }
    apimetric_sides(call, sides);
    sides[0].model = apimetric_model(call, call->base);
    sides[1].model = apimetric_model(call, call->view);
    diff = diff_make(sides, &options);
    paths = job_array(diff.row_count, sizeof *paths);
    for (size_t i = 0; i < diff.row_count; i++) {
        if (diff_change(diff.rows[i].costs, metric) != 0) {
            paths[count++] = (struct changed_path){&diff, &diff.rows[i], metric};
        }
    }
    apitable_array(call, &shown, paths, sizeof *paths, count);
    apimetric_diff_command(call, "path");
}

/* ---- Both ---- */

void api_paths(struct api_call *call) {
    struct table_column columns[CONTEXT_COLUMNS];
    const struct rows rows = {.columns = columns, .column_count = CONTEXT_COLUMNS};
    const struct apitable_rows shown = {.rows = &rows,
                                        .shown = apipaths_shown,
                                        .count = APIPATHS_SHOWN,
                                        .sort = metric_fact(call->metric),
                                        .more = put_beside_paths};
    struct rows_of of = rows_of_report(&call->report);
    const struct model *model;
    const void **records;
    size_t count = 0;
    if (call->base != NULL) {
        put_changes(call);
        return;
    }
    model = apimetric_model(call, call->view);
    of.model = model;
    of.whole = call->view->whole;
    apipaths_columns(columns);
    records = job_array(model->context_count, sizeof *records);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (context->class == MODEL_HEAP && metric_cost(call->metric, context).main != 0) {
            records[count++] = context;
        }
    }
    apitable_records(call, NULL, &shown, &of, records, count);
    api_command(call, "report %s --paths", apimetric_option(call));
}

/* ---- One call path ---- */

static void put_totals(struct api_call *call, const struct model_context *context) {
    static const unsigned char sums[] = {
        CONTEXT_LIVE_BYTES,  CONTEXT_LIVE_BLOCKS, CONTEXT_PEAK_BYTES,  CONTEXT_TOTAL_BYTES,
        CONTEXT_ALLOCATIONS, CONTEXT_FREES,       CONTEXT_FREED_BYTES, CONTEXT_TEMPORARY};
    jsonwriter_string(call->json, "class", model_class_name(call->view->whole, context));
    rows_members(call->json, &rows_contexts, NULL, context, sums, sizeof sums);
}

static void put_timeline(struct api_call *call, uint32_t id) {
    enum { POINTS = 200 };
    const struct series *series = series_of(call, &id, 1, POINTS);
    if (series->points == 0) {
        jsonwriter_string(call->json, "timeline", NULL);
        return;
    }
    jsonwriter_map(call->json, "timeline");
    put_numbers(call->json, "time_ns", series->times, series->points);
    put_numbers(call->json, "live", series->live, series->points);
    jsonwriter_end_map(call->json);
}

/* Of the blocks that were freed: the model has them in 16 buckets. */
static void put_lifetimes(struct api_call *call, const struct model_context *context) {
    const struct model *model = call->view->model;
    if (context->lifetimes == MODEL_NO_LIFETIMES || model->lifetimes == NULL) {
        jsonwriter_string(call->json, "lifetimes", NULL);
    } else {
        apidetail_write_buckets(call->json, "lifetimes", &model->lifetimes[context->lifetimes]);
    }
}

/* They take a pass: where that is short, or asked for. */
static void costs_put_sizes(struct api_call *call, const struct model_context *context,
                            uint64_t hash) {
    const struct answer *view = call->view;
    const struct detail_wish wish = {
        .parts = DETAIL_SIZES, .classes = 1u << context->class, .limit = 1};
    struct selection selection = *view->selection; /* not to be freed */
    const struct detail *detail;
    bool is_asked = api_flag(call, "sizes");
    if (view->source->parts.count == 0 ||
        (!is_asked && view->whole->recording.events > SERIES_PASS_EVENTS)) {
        jsonwriter_string(call->json, "sizes", NULL);
        return;
    }
    selection.path = hash;
    detail = apidetail_gather(view, &wish, &selection, &call->replay);
    jsonwriter_array(call->json, "sizes");
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        if (detail->sizes[i].allocations != 0) {
            jsonwriter_map(call->json, NULL);
            jsonwriter_number(call->json, "from", i != 0 ? UINT64_C(1) << (i - 1) : 0);
            jsonwriter_number(call->json, "to", i != 0 ? UINT64_MAX >> (64 - i) : 0);
            jsonwriter_number(call->json, "count", detail->sizes[i].allocations);
            jsonwriter_end_map(call->json);
        }
    }
    jsonwriter_end_array(call->json);
    call->told.via = API_VIA_PASS;
}

/* Costs are of the heap, or of what filters make of it; paths that a filter leaves out have none.
 */
void api_path(struct api_call *call) {
    const struct model *whole = call->view->whole;
    const struct model_context *known = NULL;
    const struct model_context *context;
    struct model_context nothing;
    uint64_t hash = strtoull(call->rest, NULL, 16);
    if (strlen(call->rest) != 16 || strspn(call->rest, "0123456789abcdef") != 16) {
        api_refuse(call, 404, "'%s' is not the hash of a call path", call->rest);
    }
    for (size_t i = 0; i < whole->context_count && known == NULL; i++) {
        known = model_hash(whole, whole->contexts[i].id) == hash ? &whole->contexts[i] : NULL;
    }
    if (known == NULL) {
        api_refuse(call, 404, "there is no call path %s", call->rest);
    }
    nothing = (struct model_context){.id = known->id,
                                     .path = known->path,
                                     .class = known->class,
                                     .pool = known->pool,
                                     .lifetimes = MODEL_NO_LIFETIMES};
    context = model_find(call->view->model, known->id);
    context = context != NULL ? context : &nothing;
    api_command(call, "report --show-peak --paths --path %s", call->rest);
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "hash", call->rest);
    apiframes_write_path(&call->report, call->json, "frames", known->path);
    put_totals(call, context);
    put_timeline(call, known->id);
    put_lifetimes(call, context);
    costs_put_sizes(call, context, hash);
    jsonwriter_end_map(call->json);
}
