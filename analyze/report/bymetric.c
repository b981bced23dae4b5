/* SPDX-License-Identifier: MIT */
/*
 * bymetric.c: what costs most by some metric: functions, callers and callees of some, call paths.
 *
 * Of a function the table says what it allocated itself, and what was allocated in it and in what
 * it called. A function that calls itself counts once.
 */
#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Functions with costs ---- */

struct function {
    const struct names_frame *frame; /* NULL: none */
    uint64_t key;                    /* of the function; 0: none */
    struct cost self;
    struct cost inclusive;
    uint32_t active; /* how often it is on the path that is being walked */
};

struct functions {
    struct function *items;
    size_t count;
    size_t room;
    struct numbermap by_key;
};

/* NULL: out of memory. */
static struct function *function_of(struct functions *functions, const struct names_frame *frame) {
    uint64_t key = frame != NULL ? frame->function_key : 0;
    uintptr_t found = (uintptr_t)numbermap_get(&functions->by_key, key);
    if (found != 0) {
        return &functions->items[found - 1];
    }
    if (array_grow(&functions->items, &functions->room, functions->count,
                   sizeof *functions->items) != 0 ||
        numbermap_put(&functions->by_key, key, (void *)(functions->count + 1)) != 0) {
        return NULL;
    }
    functions->items[functions->count] = (struct function){.frame = frame, .key = key};
    return &functions->items[functions->count++];
}

static void free_functions(struct functions *functions) {
    free(functions->items);
    numbermap_free(&functions->by_key);
}

static int compare(uint64_t left, uint64_t right) {
    return (left < right) - (left > right);
}

static int dearest_function_first(const void *left, const void *right) {
    const struct function *a = left;
    const struct function *b = right;
    int order = compare(a->self.main, b->self.main);
    if (order == 0) {
        order = compare(a->inclusive.main, b->inclusive.main);
    }
    return order != 0 ? order : compare(b->key, a->key);
}

static void sort_functions(struct functions *functions) {
    if (functions->count != 0) {
        qsort(functions->items, functions->count, sizeof *functions->items, dearest_function_first);
    }
}

/* The function, not one of its calls. */
static struct names_frame without_line(const struct names_frame *frame) {
    struct names_frame function = *frame;
    function.line = 0;
    function.inlined = false;
    return function;
}

/* ---- The table by function ---- */

/* The tree of nodes as lists, and what lies under each. */
struct forest {
    uint32_t *first_child;
    uint32_t *next;
    struct cost *cost; /* first of the node alone, then of its whole subtree */
};

static const struct names_frame unknown_frame = {.module = ""};

static int add_self(const struct report *report, struct functions *functions, struct forest *forest,
                    enum metric metric) {
    const struct model *model = report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        const struct names_frame *frame = &unknown_frame;
        struct function *function;
        size_t count;
        if (context->class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        if (context->path != 0) {
            frame = names_frames(report->names, model->nodes[context->path].frame, &count);
        }
        function = function_of(functions, frame);
        if (function == NULL) {
            return -1;
        }
        metric_add(&function->self, cost);
        if (context->path == 0) {
            metric_add(&function->inclusive, cost);
        }
        metric_add(&forest->cost[context->path], cost);
    }
    return 0;
}

static void link_nodes(const struct model *model, struct forest *forest) {
    for (size_t id = model->node_count; id-- > 1;) {
        uint32_t parent = model->nodes[id].parent;
        metric_add(&forest->cost[parent], forest->cost[id]);
        forest->next[id] = forest->first_child[parent];
        forest->first_child[parent] = (uint32_t)id;
    }
}

/* Comes to a node (+1) or leaves it (-1). A function's cost is that of the outermost node it is on:
 * whatever lies below is in there already. */
static int visit(const struct report *report, struct functions *functions,
                 const struct forest *forest, uint32_t id, int step) {
    uint64_t recorded = report->model->nodes[id].frame;
    const struct names_frame *frames;
    size_t count;
    if (recorded < MEMTRACE_FRAME_CLASSES || forest->cost[id].main == 0) {
        return 0;
    }
    frames = names_frames(report->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        struct function *function = function_of(functions, &frames[i]);
        if (function == NULL) {
            return -1;
        }
        if (step > 0 && function->active == 0) {
            metric_add(&function->inclusive, forest->cost[id]);
        }
        function->active += (uint32_t)step;
    }
    return 0;
}

/* Depth first, without recursion: paths may be of any depth. */
static int walk_nodes(const struct report *report, struct functions *functions,
                      const struct forest *forest) {
    const struct model *model = report->model;
    uint32_t at = forest->first_child[0];
    while (at != 0) {
        if (visit(report, functions, forest, at, 1) != 0) {
            return -1;
        }
        if (forest->first_child[at] != 0) {
            at = forest->first_child[at];
            continue;
        }
        while (at != 0) {
            if (visit(report, functions, forest, at, -1) != 0) {
                return -1;
            }
            if (forest->next[at] != 0) {
                at = forest->next[at];
                break;
            }
            at = model->nodes[at].parent;
        }
    }
    return 0;
}

static int collect(const struct report *report, struct functions *functions, enum metric metric) {
    size_t count = report->model->node_count;
    struct forest forest = {calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)),
                            calloc(count, sizeof(struct cost))};
    int result = -1;
    if (forest.first_child != NULL && forest.next != NULL && forest.cost != NULL) {
        result = add_self(report, functions, &forest, metric);
    }
    if (result == 0) {
        link_nodes(report->model, &forest);
        result = walk_nodes(report, functions, &forest);
    }
    free(forest.first_child);
    free(forest.next);
    free(forest.cost);
    return result;
}

/* Start-up code is shown where it allocates itself. */
static bool is_shown(const struct report *report, const struct function *function, uint64_t most,
                     uint64_t total) {
    double least = (double)total / 100.0 * report->options.min_percent;
    bool is_all = report->options.all_frames || !report_is_for_people(report);
    return (double)most >= least &&
           (is_all || function->self.main != 0 || !pathwalk_is_startup(function->frame));
}

static void put_function(struct table *table, const struct function *function, struct cost total) {
    struct names_frame frame = without_line(function->frame);
    table_row(table, (struct table_cell[]){
                         table_share(function->self.main, total.main),
                         table_number(function->self.main), table_number(function->self.side),
                         table_share(function->inclusive.main, total.main),
                         table_number(function->inclusive.main), table_frame(&frame)});
}

static void put_functions(struct table *table, const struct functions *functions,
                          struct cost total) {
    const struct report *report = table->report;
    for (size_t i = 0; i < functions->count; i++) {
        const struct function *function = &functions->items[i];
        uint64_t most = function->inclusive.main > function->self.main ? function->inclusive.main
                                                                       : function->self.main;
        if (most == 0) {
            continue;
        }
        if (table_has_room(table) && is_shown(report, function, most, total.main)) {
            put_function(table, function, total);
        } else {
            table->hidden++;
        }
    }
}

int report_flat(const struct report *report, enum metric metric) {
    const struct table_column columns[] = {
        {"self_percent", "self", TABLE_PERCENT, 0},
        {"self", metric_main_heading(metric), metric_main_kind(metric), 11},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 12},
        {"inclusive_percent", "incl.", TABLE_PERCENT, 8},
        {"inclusive", metric_main_heading(metric), metric_main_kind(metric), 11},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct functions functions = {0};
    struct cost total = metric_total(metric, report->model);
    struct report_title title;
    int result = collect(report, &functions, metric);
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns,
                   sizeof columns / sizeof columns[0]);
    if (result == 0) {
        sort_functions(&functions);
        put_functions(&table, &functions, total);
    }
    table_close(&table);
    free_functions(&functions);
    return result;
}

/*
 * ---- Who calls some functions, and what they call ----
 *
 * A path counts once, however often it goes through a function that is asked for: its caller is
 * who stands outside of the outermost of them, its callee what stands inside of the innermost. So
 * callers add up to the cost of the functions, and so do callees with what they allocate
 * themselves.
 */

static const struct names_frame nobody = {.function = "(nobody)", .module = ""};
static const struct names_frame itself = {.function = "(itself)", .module = ""};

static bool is_asked(const struct callers_of *of, const struct names_frame *frame) {
    char name[4096];
    names_spell(frame, name, sizeof name);
    return of->function != NULL ? strcmp(name, of->function) == 0
                                : regexec(of->regex, name, 0, NULL, 0) == 0;
}

static int add(struct functions *sides, const struct names_frame *frame, struct cost cost) {
    struct function *side = function_of(sides, frame);
    if (side == NULL) {
        return -1;
    }
    metric_add(&side->self, cost);
    return 0;
}

/* The neighbours of the functions on one path. false: it does not go through any. */
static bool look_along(const struct report *report, const struct callers_of *of, uint32_t path,
                       const struct names_frame **caller, const struct names_frame **callee) {
    const struct names_frame *inside = NULL;
    bool is_met = false;
    bool is_next = false;
    struct pathwalk walk = pathwalk(report, path);
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        if (is_next) {
            *caller = walk.frame;
            is_next = false;
        }
        if (is_asked(of, walk.frame)) {
            if (!is_met) {
                *callee = inside;
            }
            is_met = true;
            is_next = true;
            *caller = NULL;
        }
        inside = walk.frame;
    }
    return is_met;
}

static void put_sides(const struct report *report, enum metric metric, struct functions *sides,
                      const char *name, const char *title, const struct names_frame *none,
                      struct cost total) {
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct table table = table_open(report, name, title, columns, 4);
    double least = (double)total.main / 100 * report->options.min_percent;
    sort_functions(sides);
    for (size_t i = 0; i < sides->count; i++) {
        const struct function *side = &sides->items[i];
        struct names_frame frame = without_line(side->frame != NULL ? side->frame : none);
        if (side->self.main == 0) {
            continue;
        }
        if (!table_has_room(&table) || (double)side->self.main < least) {
            table.hidden++;
            continue;
        }
        table_row(&table,
                  (struct table_cell[]){table_share(side->self.main, total.main),
                                        table_number(side->self.main),
                                        table_number(side->self.side), table_frame(&frame)});
    }
    table_close(&table);
}

static void put_total(const struct report *report, enum metric metric, const struct callers_of *of,
                      struct cost cost) {
    const struct table_column columns[] = {
        {"function", "function", TABLE_TEXT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
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

int report_callers(const struct report *report, enum metric metric, const struct callers_of *of) {
    const struct model *model = report->model;
    struct functions callers = {0};
    struct functions callees = {0};
    struct cost total = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        const struct names_frame *caller = NULL;
        const struct names_frame *callee = NULL;
        if (context->class != MODEL_HEAP || cost.main == 0 ||
            !look_along(report, of, context->path, &caller, &callee)) {
            continue;
        }
        metric_add(&total, cost);
        result = add(&callers, caller, cost) | add(&callees, callee, cost);
    }
    if (result == 0) {
        put_total(report, metric, of, total);
        put_sides(report, metric, &callers, "callers", "Called by", &nobody, total);
        put_sides(report, metric, &callees, "callees", "Calls", &itself, total);
    }
    free_functions(&callers);
    free_functions(&callees);
    return result;
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

/* Nothing lives longer than the run, however coarse the bucket. */
static uint64_t median_bound(uint64_t bucket_ns, const struct model *model) {
    return model->now_ns != 0 && model->now_ns < bucket_ns ? model->now_ns : bucket_ns;
}

/* How long half of the freed blocks lived at most; 0: none was freed. */
static uint64_t median_lifetime(const struct model *model, const struct model_context *context) {
    const uint64_t *buckets;
    uint64_t all = 0;
    uint64_t sum = 0;
    if (context->lifetimes == MODEL_NO_LIFETIMES) {
        return 0;
    }
    buckets = &model->lifetimes[context->lifetimes];
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        all += buckets[i];
    }
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS - 1; i++) {
        sum += buckets[i];
        if (sum * 2 >= all) {
            return all != 0 ? median_bound(UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT), model) : 0;
        }
    }
    return 0;
}

/* Rank, share, cost, and what else is known of a path. */
static void put_head(const struct report *report, enum metric metric, size_t rank,
                     const struct ranked *ranked, struct cost total) {
    const struct model_context *context = ranked->context;
    uint64_t median = median_lifetime(report->model, context);
    struct number numbers[6];
    fprintf(report->out, "%s%4zu.%s %s%6s %11s%s  %s", style_on(report, STYLE_DIM), rank,
            style_off(report), style_on(report, style_share(ranked->cost.main, total.main)),
            number_percent(&numbers[0], ranked->cost.main, total.main),
            metric_main_text(metric, &numbers[1], ranked->cost), style_off(report),
            number_items(&numbers[2], context->allocations, "allocation"));
    if (metric != METRIC_CUMULATIVE && context->total_bytes != ranked->cost.main) {
        fprintf(report->out, " of %s in total", number_bytes(&numbers[3], context->total_bytes));
    }
    if (context->live_blocks != 0) {
        fprintf(report->out, ", %s in %s %s", number_bytes(&numbers[4], context->live_bytes),
                number_count(&numbers[5], context->live_blocks),
                metric == METRIC_SHUTDOWN ? "freed at shutdown or never"
                                          : report_held(report->model));
    }
    if (median != 0) {
        fprintf(report->out, ", median lifetime under %s", number_duration(&numbers[3], median));
    }
    fprintf(report->out, "  %s%016" PRIx64 "%s\n", style_on(report, STYLE_DIM),
            model_hash(report->model, context->id), style_off(report));
}

static void put_path(const struct report *report, enum metric metric, size_t rank,
                     const struct ranked *ranked, struct cost total) {
    struct report head = *report;
    char *text = NULL;
    size_t size = 0;
    head.out = open_memstream(&text, &size);
    if (head.out == NULL) {
        put_head(report, metric, rank, ranked, total); /* however wide */
    } else {
        put_head(&head, metric, rank, ranked, total);
        if (fclose(head.out) == 0) {
            style_lines(report, text, HEAD_INDENT);
        }
        free(text);
    }
    style_path(report, pathwalk_folded(report, ranked->context->path), report->options.depth);
}

static struct ranked *rank(const struct report *report, enum metric metric, size_t *count) {
    const struct model *model = report->model;
    struct ranked *ranked = calloc(model->context_count + 1, sizeof *ranked);
    *count = 0;
    for (size_t i = 0; ranked != NULL && i < model->context_count; i++) {
        struct cost cost = metric_cost(metric, &model->contexts[i]);
        if (model->contexts[i].class == MODEL_HEAP && cost.main != 0) {
            ranked[(*count)++] = (struct ranked){&model->contexts[i], cost};
        }
    }
    if (ranked != NULL) {
        qsort(ranked, *count, sizeof *ranked, dearest_path_first);
    }
    return ranked;
}

/* How many of them are dear enough. */
static size_t count_shown(const struct report *report, const struct ranked *ranked, size_t count,
                          struct cost total) {
    double least = (double)total.main / 100.0 * report->options.min_percent;
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    size_t shown = 0;
    while (shown < count && shown < limit && (double)ranked[shown].cost.main >= least) {
        shown++;
    }
    return shown;
}

static void draw_paths(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    struct cost total = metric_total(metric, report->model);
    struct number number;
    fprintf(report->out, "\n%sTop call paths by %s%s\n", style_on(report, STYLE_HEADING),
            metric == METRIC_TEMPORARY ? "temporary allocations" : metric_word(metric),
            style_off(report));
    for (size_t i = 0; i < shown; i++) {
        put_path(report, metric, i + 1, &ranked[i], total);
    }
    if (count == 0) {
        fputs("nothing\n", report->out);
    } else if (shown < count) {
        fprintf(report->out, "%s      (%s not shown)%s\n", style_on(report, STYLE_DIM),
                number_items(&number, count - shown, "smaller path"), style_off(report));
    }
}

static void list_paths(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    const struct model *model = report->model;
    struct cost total = metric_total(metric, model);
    struct report_title title;
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
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

int report_paths(const struct report *report, enum metric metric) {
    size_t count;
    struct ranked *ranked = rank(report, metric, &count);
    size_t shown;
    if (ranked == NULL) {
        return -1;
    }
    shown = count_shown(report, ranked, count, metric_total(metric, report->model));
    if (report->options.format == REPORT_TEXT) {
        draw_paths(report, metric, ranked, shown, count);
    } else {
        list_paths(report, metric, ranked, shown, count);
    }
    free(ranked);
    return 0;
}
