/* SPDX-License-Identifier: MIT */
/*
 * flat.c: the table by function: what it allocated itself, and what was allocated in it and in
 * what it called. A function that calls itself counts once.
 */
#include "analyze/base/numbermap.h"
#include "analyze/report/calltree.h"
#include "analyze/rows/table.h"

#include <stdlib.h>

struct function {
    const struct names_frame *frame;
    struct cost self;
    struct cost inclusive;
    uint32_t active; /* how often it is on the path that is being walked */
};

struct functions {
    const struct report *report;
    struct function *items;
    size_t count;
    size_t capacity;
    struct numbermap by_key;
};

/* The tree of nodes as lists, and what lies under each. */
struct forest {
    uint32_t *first_child;
    uint32_t *next;
    struct cost *cost; /* first of the node alone, then of its whole subtree */
};

static const struct names_frame unknown_frame = {.module = ""};

/* NULL: out of memory. */
static struct function *function_of(struct functions *functions, const struct names_frame *frame) {
    uintptr_t found = (uintptr_t)numbermap_get(&functions->by_key, frame->function_key);
    if (found != 0) {
        return &functions->items[found - 1];
    }
    if (functions->count == functions->capacity) {
        size_t capacity = functions->capacity != 0 ? functions->capacity * 2 : 256;
        struct function *grown = realloc(functions->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        functions->items = grown;
        functions->capacity = capacity;
    }
    if (numbermap_put(&functions->by_key, frame->function_key, (void *)(functions->count + 1)) !=
        0) {
        return NULL;
    }
    functions->items[functions->count] = (struct function){.frame = frame};
    return &functions->items[functions->count++];
}

static int add_self(struct functions *functions, struct forest *forest, enum metric metric) {
    const struct model *model = functions->report->model;
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
            frame =
                names_frames(functions->report->names, model->nodes[context->path].frame, &count);
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
static int visit(struct functions *functions, const struct forest *forest, uint32_t id, int step) {
    uint64_t recorded = functions->report->model->nodes[id].frame;
    const struct names_frame *frames;
    size_t count;
    if (recorded < MEMTRACE_FRAME_CLASSES || forest->cost[id].main == 0) {
        return 0;
    }
    frames = names_frames(functions->report->names, recorded, &count);
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
static int walk_nodes(struct functions *functions, const struct forest *forest) {
    const struct model *model = functions->report->model;
    uint32_t at = forest->first_child[0];
    while (at != 0) {
        if (visit(functions, forest, at, 1) != 0) {
            return -1;
        }
        if (forest->first_child[at] != 0) {
            at = forest->first_child[at];
            continue;
        }
        while (at != 0) {
            if (visit(functions, forest, at, -1) != 0) {
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

static int collect(struct functions *functions, enum metric metric) {
    size_t count = functions->report->model->node_count;
    struct forest forest = {calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)),
                            calloc(count, sizeof(struct cost))};
    int result = -1;
    if (forest.first_child != NULL && forest.next != NULL && forest.cost != NULL) {
        result = add_self(functions, &forest, metric);
    }
    if (result == 0) {
        link_nodes(functions->report->model, &forest);
        result = walk_nodes(functions, &forest);
    }
    free(forest.first_child);
    free(forest.next);
    free(forest.cost);
    return result;
}

static int compare(uint64_t left, uint64_t right) {
    return (left < right) - (left > right);
}

static int dearest_first(const void *left, const void *right) {
    const struct function *a = left;
    const struct function *b = right;
    int order = compare(a->self.main, b->self.main);
    if (order == 0) {
        order = compare(a->inclusive.main, b->inclusive.main);
    }
    return order != 0 ? order : compare(b->frame->function_key, a->frame->function_key);
}

/* Start-up code is shown where it allocates itself. */
static bool is_shown(const struct report *report, const struct function *function, uint64_t most,
                     uint64_t total) {
    double least = (double)total / 100.0 * report->options.min_percent;
    bool is_all = report->options.all_frames || !report_is_for_people(report);
    return (double)most >= least &&
           (is_all || function->self.main != 0 || !pathwalk_is_startup(function->frame));
}

static void put_row(struct table *table, const struct function *function, struct cost total) {
    struct names_frame frame = *function->frame;
    frame.line = 0; /* of the function, not of one of its calls */
    frame.inlined = false;
    table_row(table, (struct table_cell[]){
                         table_share(function->self.main, total.main),
                         table_number(function->self.main), table_number(function->self.side),
                         table_share(function->inclusive.main, total.main),
                         table_number(function->inclusive.main), table_frame(&frame)});
}

static void put_rows(struct table *table, const struct functions *functions, struct cost total) {
    const struct report *report = table->report;
    for (size_t i = 0; i < functions->count; i++) {
        const struct function *function = &functions->items[i];
        uint64_t most = function->inclusive.main > function->self.main ? function->inclusive.main
                                                                       : function->self.main;
        bool fits = report->options.limit == 0 || table->rows < report->options.limit;
        if (most == 0) {
            continue;
        }
        if (fits && is_shown(report, function, most, total.main)) {
            put_row(table, function, total);
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
    struct functions functions = {.report = report};
    struct cost total = metric_total(metric, report->model);
    struct report_title title;
    int result = collect(&functions, metric);
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns,
                   sizeof columns / sizeof columns[0]);
    if (result == 0 && functions.count != 0) {
        qsort(functions.items, functions.count, sizeof *functions.items, dearest_first);
        put_rows(&table, &functions, total);
    }
    table_close(&table);
    free(functions.items);
    numbermap_free(&functions.by_key);
    return result;
}
