/* SPDX-License-Identifier: MIT */
/*
 * bymetric.c: what costs most by some metric: functions, callers and callees of some, call paths.
 *
 * Of a function the table says what it allocated itself, and what was allocated in it and in what
 * it called. A function that calls itself counts once.
 */
#include "analyze/base/job.h"
#include "analyze/report/calltree.h"
#include "analyze/report/findings.h"
#include "analyze/report/framesums.h"
#include "analyze/rows/number.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdlib.h>

/* The function, not one of its calls. */
static struct names_frame without_line(const struct names_frame *frame) {
    struct names_frame function = *frame;
    function.line = 0;
    function.inlined = false;
    return function;
}

/* ---- The table by function ---- */

/* Start-up code is shown where it allocates itself. */
static bool flat_is_shown(const struct table *table, const struct names_frame *frame,
                          struct cost self, uint64_t most, uint64_t total) {
    const struct report *report = table->report;
    double least = (double)total / 100.0 * report->options.min_percent;
    bool is_all = report->options.all_frames || !report_is_for_people(report);
    return table_has_room(table) && (double)most >= least &&
           (is_all || self.main != 0 || !pathwalk_is_startup(frame));
}

void report_flat(const struct report *report, enum metric metric) {
    const struct table_column columns[] = {
        {"self_percent", "self", TABLE_PERCENT, 0},
        {"self", metric_main_heading(metric), metric_main_kind(metric), 11},
        metric_side_column(metric),
        {"inclusive_percent", "incl.", TABLE_PERCENT, 8},
        {"inclusive", metric_main_heading(metric), metric_main_kind(metric), 11},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct framesums functions = framesums_make(report, FRAMESUMS_FUNCTION);
    struct cost total = metric_total(metric, report->model);
    struct report_title title;
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns,
                   sizeof columns / sizeof columns[0]);
    framesums_sort(&functions, metric);
    for (size_t i = 0; i < functions.count; i++) {
        const struct framesums_item *function = &functions.items[i];
        struct names_frame frame = without_line(function->frame);
        struct cost self = framesums_cost(metric, &function->self);
        struct cost inclusive = framesums_cost(metric, &function->inclusive);
        uint64_t most = inclusive.main > self.main ? inclusive.main : self.main;
        if (most != 0 && flat_is_shown(&table, function->frame, self, most, total.main)) {
            table_row(&table, (struct table_cell[]){
                                  table_share(self.main, total.main), table_number(self.main),
                                  table_number(self.side), table_share(inclusive.main, total.main),
                                  table_number(inclusive.main), table_frame(&frame)});
        } else {
            table.hidden += most != 0;
        }
    }
    table_close(&table);
}

/* ---- Callers and callees: the first level of the trees around functions ---- */

static const struct names_frame nobody = {.function = "(nobody)", .module = ""};
static const struct names_frame itself = {.function = "(itself)", .module = ""};

static void callers_put_side(struct table *table, const struct names_frame *of, struct cost cost,
                             struct cost total) {
    double least = (double)total.main / 100 * table->report->options.min_percent;
    struct names_frame frame = without_line(of);
    if (cost.main == 0) {
        return;
    }
    if (!table_has_room(table) || (double)cost.main < least) {
        table->hidden++;
        return;
    }
    table_row(table,
              (struct table_cell[]){table_share(cost.main, total.main), table_number(cost.main),
                                    table_number(cost.side), table_frame(&frame)});
}

/* `none`: what stands for the paths that end at the functions. */
static void callers_put_sides(const struct report *report, enum metric metric,
                              const struct calltree *tree, const char *name, const char *title,
                              const struct names_frame *none) {
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        metric_main_column(metric),
        metric_side_column(metric),
        {"function", "function", TABLE_FRAME, 0},
    };
    struct table table = table_open(report, name, title, columns, 4);
    const struct call *root = &tree->calls[0];
    bool is_none_put = false;
    for (uint32_t at = root->first_child; at != 0; at = tree->calls[at].next) {
        const struct call *call = &tree->calls[at];
        if (!is_none_put && root->self.main >= call->cost.main) {
            callers_put_side(&table, none, root->self, root->cost);
            is_none_put = true;
        }
        callers_put_side(&table, call->frame, call->cost, root->cost);
    }
    if (!is_none_put) {
        callers_put_side(&table, none, root->self, root->cost);
    }
    table_close(&table);
}

static void callers_put_total(const struct report *report, enum metric metric,
                              const struct callers_of *of, struct cost cost) {
    const struct table_column columns[] = {
        {"function", "function", TABLE_TEXT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
        metric_main_column(metric),
        metric_side_column(metric),
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

void report_callers(const struct report *report, enum metric metric, const struct callers_of *of) {
    struct report around = *report;
    struct calltree callers;
    struct calltree callees;
    around.options.depth = 1;
    around.options.by_line = false;
    calltree_around(&callers, &callees, &around, metric, of);
    callers_put_total(report, metric, of, callers.calls[0].cost);
    callers_put_sides(report, metric, &callers, "callers", "Called by", &nobody);
    callers_put_sides(report, metric, &callees, "callees", "Calls", &itself);
}

/* ---- The dearest call paths, one below the other ---- */

enum { HEAD_INDENT = 9 };

struct ranked {
    const struct model_context *context;
    struct cost cost;
};

static int dearest_path_first(const void *left, const void *right) {
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->cost.main != b->cost.main) {
        return a->cost.main < b->cost.main ? 1 : -1;
    }
    return (a->context->id > b->context->id) - (a->context->id < b->context->id);
}

/* Rank, share, cost, and what else is known of a path. */
static void paths_put_head(const struct report *report, enum metric metric, size_t rank,
                           const struct ranked *ranked, struct cost total) {
    const struct model_context *context = ranked->context;
    struct table_cell median = report_median_lifetime(report->model, context);
    struct number numbers[6];
    fprintf(report->out, "%s%4zu.%s %s%6s %11s%s  %s", style_on(report, STYLE_DIM), rank,
            style_off(report), style_on(report, style_share(ranked->cost.main, total.main)),
            number_percent(&numbers[0], ranked->cost.main, total.main),
            metric_main_text(metric, &numbers[1], ranked->cost), style_off(report),
            number_items(&numbers[2], context->allocations, "allocation"));
    if (context->frame == MEMTRACE_FRAME_BEFORE) {
        fprintf(report->out, ", but %s in %s freed",
                number_bytes(&numbers[3], context->freed_bytes),
                number_items(&numbers[4], context->frees, "block"));
    } else if (metric != METRIC_CUMULATIVE && context->total_bytes != ranked->cost.main) {
        fprintf(report->out, " of %s in total", number_bytes(&numbers[3], context->total_bytes));
    }
    if (context->live_blocks != 0) {
        fprintf(report->out, ", %s in %s %s", number_bytes(&numbers[4], context->live_bytes),
                number_count(&numbers[5], context->live_blocks),
                metric == METRIC_SHUTDOWN ? "freed at shutdown or never"
                                          : report_held(report->model));
    }
    if (median.is_known && median.note == TABLE_BELOW) {
        fprintf(report->out, ", median lifetime under %s",
                number_duration(&numbers[3], median.number));
    }
    fprintf(report->out, "  %s%016" PRIx64 "%s\n", style_on(report, STYLE_DIM),
            model_hash(report->model, context->id), style_off(report));
}

static void paths_put_one(const struct report *report, enum metric metric, size_t rank,
                          const struct ranked *ranked, struct cost total) {
    struct report head = *report;
    struct job_printing *printing = job_print();
    head.out = printing->out;
    paths_put_head(&head, metric, rank, ranked, total);
    style_lines(report, job_printed(printing), HEAD_INDENT);
    style_path(report, pathwalk_folded(report, ranked->context->path), report->options.depth);
}

static void paths_draw(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    struct cost total = metric_total(metric, report->model);
    struct number number;
    fprintf(report->out, "\n%sTop call paths by %s%s\n", style_on(report, STYLE_HEADING),
            metric == METRIC_TEMPORARY ? "temporary allocations" : metric_word(metric),
            style_off(report));
    for (size_t i = 0; i < shown; i++) {
        paths_put_one(report, metric, i + 1, &ranked[i], total);
    }
    if (count == 0) {
        fputs("nothing\n", report->out);
    } else if (shown < count) {
        fprintf(report->out, "%s      (%s not shown)%s\n", style_on(report, STYLE_DIM),
                number_items(&number, count - shown, "smaller path"), style_off(report));
    }
}

static void paths_list(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    const struct model *model = report->model;
    struct cost total = metric_total(metric, model);
    struct report_title title;
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        metric_main_column(metric),
        metric_side_column(metric),
        {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns, 5);
    for (size_t i = 0; i < shown; i++) {
        const struct model_context *context = ranked[i].context;
        table_row(&table, (struct table_cell[]){table_share(ranked[i].cost.main, total.main),
                                                table_number(ranked[i].cost.main),
                                                table_number(ranked[i].cost.side),
                                                table_number(model_hash(model, context->id)),
                                                table_path(context->path)});
    }
    table.hidden = count - shown;
    table_close(&table);
}

void report_paths(const struct report *report, enum metric metric) {
    const struct model *model = report->model;
    struct cost total = metric_total(metric, model);
    double least = (double)total.main / 100.0 * report->options.min_percent;
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct ranked *ranked = job_array(model->context_count, sizeof *ranked);
    size_t count = 0;
    size_t shown = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        struct cost cost = metric_cost(metric, &model->contexts[i]);
        if (model->contexts[i].class == MODEL_HEAP && cost.main != 0) {
            ranked[count++] = (struct ranked){&model->contexts[i], cost};
        }
    }
    qsort(ranked, count, sizeof *ranked, dearest_path_first);
    while (shown < count && shown < limit && (double)ranked[shown].cost.main >= least) {
        shown++;
    }
    (report->options.format == REPORT_TEXT ? paths_draw : paths_list)(report, metric, ranked, shown,
                                                                      count);
    job_release(ranked);
}

/* ---- Who allocates most often ---- */

static const struct names_frame unknown = {.function = "(unknown code)", .module = ""};

static void often_put(struct table *table, const struct report *report,
                      const struct culprit *culprit) {
    const struct model *model = report->model;
    bool is_known = !model_is_estimate(model) || !model->recording.present;
    uint64_t temporary = 0;
    struct names_frame frame = unknown;
    if (culprit->frame != NULL) {
        frame = culprit->is_one_line ? *culprit->frame : without_line(culprit->frame);
    }
    for (size_t i = 0; i < culprit->paths; i++) {
        const struct model_context *context = model_find(model, culprit->contexts[i]);
        temporary += context != NULL ? context->temporary : 0;
    }
    table_row(table, (struct table_cell[]){
                         table_share(culprit->cost.main, model->totals.allocations),
                         table_number(culprit->cost.main), table_number(culprit->cost.side),
                         table_number(culprit->cost.side / culprit->cost.main),
                         table_number_if(is_known, temporary), table_number(culprit->paths),
                         table_frame(&frame)});
}

void report_often(const struct report *report) {
    static const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT},       {"allocations", "allocations", TABLE_COUNT},
        {"total_bytes", "bytes", TABLE_BYTES},     {"average_bytes", "average", TABLE_BYTES},
        {"temporary", "temporary", TABLE_COUNT},   {"paths", "call paths", TABLE_COUNT},
        {"function", "allocated by", TABLE_FRAME},
    };
    size_t count;
    struct culprit *culprits = culprits_make(report, report->model, METRIC_ALLOCATIONS, &count);
    struct table table = table_open(report, "often", "Most allocations", columns,
                                    sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count && table_has_room(&table) &&
                       (double)culprits[i].cost.main * 100 >=
                           (double)report->model->totals.allocations * report->options.min_percent;
         i++) {
        often_put(&table, report, &culprits[i]);
    }
    table.hidden = count - table.rows;
    table_close(&table);
}
