/* SPDX-License-Identifier: MIT */
/*
 * flat.c: the table by function: what it allocated itself, and what was allocated in it and in
 * what it called. A function that calls itself counts once.
 */
#include "analyze/report/calltree.h"
#include "analyze/report/number.h"
#include "analyze/report/style.h"
#include "analyze/symbol/numbermap.h"

#include <stdlib.h>

struct function {
    const struct names_frame *frame;
    struct cost self;
    struct cost inclusive;
    uint32_t active; /* how often it is on the path that is being walked */
};

struct table {
    const struct report *report;
    struct function *functions;
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
static struct function *function_of(struct table *table, const struct names_frame *frame) {
    uintptr_t found = (uintptr_t)numbermap_get(&table->by_key, frame->function_key);
    if (found != 0) {
        return &table->functions[found - 1];
    }
    if (table->count == table->capacity) {
        size_t capacity = table->capacity != 0 ? table->capacity * 2 : 256;
        struct function *grown = realloc(table->functions, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        table->functions = grown;
        table->capacity = capacity;
    }
    if (numbermap_put(&table->by_key, frame->function_key, (void *)(table->count + 1)) != 0) {
        return NULL;
    }
    table->functions[table->count] = (struct function){.frame = frame};
    return &table->functions[table->count++];
}

static int add_self(struct table *table, struct forest *forest, enum metric metric) {
    const struct model *model = table->report->model;
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
            frame = names_frames(table->report->names, model->nodes[context->path].frame, &count);
        }
        function = function_of(table, frame);
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
static int visit(struct table *table, const struct forest *forest, uint32_t id, int step) {
    uint64_t recorded = table->report->model->nodes[id].frame;
    const struct names_frame *frames;
    size_t count;
    if (recorded < MEMTRACE_FRAME_CLASSES || forest->cost[id].main == 0) {
        return 0;
    }
    frames = names_frames(table->report->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        struct function *function = function_of(table, &frames[i]);
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
static int walk_nodes(struct table *table, const struct forest *forest) {
    const struct model *model = table->report->model;
    uint32_t at = forest->first_child[0];
    while (at != 0) {
        if (visit(table, forest, at, 1) != 0) {
            return -1;
        }
        if (forest->first_child[at] != 0) {
            at = forest->first_child[at];
            continue;
        }
        while (at != 0) {
            if (visit(table, forest, at, -1) != 0) {
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

static int collect(struct table *table, enum metric metric) {
    size_t count = table->report->model->node_count;
    struct forest forest = {calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)),
                            calloc(count, sizeof(struct cost))};
    int result = -1;
    if (forest.first_child != NULL && forest.next != NULL && forest.cost != NULL) {
        result = add_self(table, &forest, metric);
    }
    if (result == 0) {
        link_nodes(table->report->model, &forest);
        result = walk_nodes(table, &forest);
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

static void put_row(const struct report *report, enum metric metric,
                    const struct function *function, struct cost total) {
    struct number numbers[5];
    struct names_frame frame = *function->frame;
    enum style style = style_share(function->self.main, total.main);
    frame.line = 0; /* of the function, not of one of its calls */
    frame.inlined = false;
    fprintf(report->out, "%s%7s%s %11s %12s  %s%7s %11s%s  ", style_on(report, style),
            number_percent(&numbers[0], function->self.main, total.main), style_off(report),
            metric_main_text(metric, &numbers[1], function->self),
            metric_side_text(metric, &numbers[2], function->self), style_on(report, STYLE_DIM),
            number_percent(&numbers[3], function->inclusive.main, total.main),
            metric_main_text(metric, &numbers[4], function->inclusive), style_off(report));
    style_frame(report, &frame, 56);
    fputc('\n', report->out);
}

int report_flat(const struct report *report, enum metric metric) {
    struct table table = {.report = report};
    struct cost total = metric_total(metric, report->model);
    double least = (double)total.main / 100.0 * report->options.min_percent;
    size_t shown = 0;
    size_t hidden = 0;
    int result = collect(&table, metric);
    if (result == 0 && table.count != 0) {
        qsort(table.functions, table.count, sizeof *table.functions, dearest_first);
    }
    style_heading(report, metric_title(metric, report->model));
    fprintf(report->out, "%s%7s %11s %12s  %7s %11s  %s%s\n", style_on(report, STYLE_DIM), "self",
            metric_main_heading(metric), metric_side_heading(metric), "incl.",
            metric_main_heading(metric), "function", style_off(report));
    for (size_t i = 0; result == 0 && i < table.count; i++) {
        const struct function *function = &table.functions[i];
        uint64_t most = function->inclusive.main > function->self.main ? function->inclusive.main
                                                                       : function->self.main;
        bool fits = report->options.limit == 0 || shown < report->options.limit;
        if (most == 0) {
            continue;
        }
        if (fits && (double)most >= least &&
            (report->options.all_frames || !calltree_is_startup(function->frame))) {
            put_row(report, metric, function, total);
            shown++;
        } else {
            hidden++;
        }
    }
    if (shown + hidden == 0) {
        fprintf(report->out, "%7s\n", "nothing");
    } else if (hidden != 0) {
        fprintf(report->out, "%s%7s (%zu functions not shown)%s\n", style_on(report, STYLE_DIM), "",
                hidden, style_off(report));
    }
    free(table.functions);
    numbermap_free(&table.by_key);
    return result;
}
