/* SPDX-License-Identifier: MIT */
/*
 * callers.c: who calls some functions, and what they call, each with its cost.
 *
 * A path counts once, however often it goes through a function that is asked for: its caller is
 * who stands outside of the outermost of them, its callee what stands inside of the innermost. So
 * callers add up to the cost of the functions, and so do callees with what they allocate
 * themselves.
 */
#include "analyze/base/numbermap.h"
#include "analyze/report/calltree.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

struct side {
    const struct names_frame *frame; /* NULL: none */
    struct cost cost;
};

struct sides {
    struct side *items;
    size_t count;
    size_t capacity;
    struct numbermap by_key;
};

static const struct names_frame nobody = {.function = "(nobody)", .module = ""};
static const struct names_frame itself = {.function = "(itself)", .module = ""};

static bool is_asked(const struct callers_of *of, const struct names_frame *frame) {
    char name[4096];
    names_spell(frame, name, sizeof name);
    return of->function != NULL ? strcmp(name, of->function) == 0
                                : regexec(of->regex, name, 0, NULL, 0) == 0;
}

static int add(struct sides *sides, const struct names_frame *frame, struct cost cost) {
    uint64_t key = frame != NULL ? frame->function_key : 0;
    size_t at = (size_t)(uintptr_t)numbermap_get(&sides->by_key, key);
    if (at == 0 && sides->count == sides->capacity) {
        size_t capacity = sides->capacity != 0 ? sides->capacity * 2 : 16;
        struct side *grown = reallocarray(sides->items, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        sides->items = grown;
        sides->capacity = capacity;
    }
    if (at == 0) {
        sides->items[sides->count++] = (struct side){.frame = frame};
        at = sides->count;
        if (numbermap_put(&sides->by_key, key, (void *)at) != 0) {
            return -1;
        }
    }
    metric_add(&sides->items[at - 1].cost, cost);
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

static int dearest_first(const void *left, const void *right) {
    const struct side *a = left;
    const struct side *b = right;
    if (a->cost.main != b->cost.main) {
        return a->cost.main < b->cost.main ? 1 : -1;
    }
    if (a->frame == NULL || b->frame == NULL) {
        return (a->frame != NULL) - (b->frame != NULL);
    }
    return (a->frame->function_key > b->frame->function_key) -
           (a->frame->function_key < b->frame->function_key);
}

static void put_sides(const struct report *report, enum metric metric, struct sides *sides,
                      const char *name, const char *title, const struct names_frame *none,
                      struct cost total) {
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
        {"function", "function", TABLE_FRAME, 0},
    };
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct table table = table_open(report, name, title, columns, 4);
    if (sides->count != 0) {
        qsort(sides->items, sides->count, sizeof *sides->items, dearest_first);
    }
    for (size_t i = 0; i < sides->count; i++) {
        const struct side *side = &sides->items[i];
        struct names_frame frame = side->frame != NULL ? *side->frame : *none;
        double least = (double)total.main / 100 * report->options.min_percent;
        if (side->cost.main == 0) {
            continue;
        }
        if (table.rows >= limit || (double)side->cost.main < least) {
            table.hidden++;
            continue;
        }
        frame.line = 0;
        frame.inlined = false;
        table_row(&table,
                  (struct table_cell[]){table_share(side->cost.main, total.main),
                                        table_number(side->cost.main),
                                        table_number(side->cost.side), table_frame(&frame)});
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
    struct sides callers = {0};
    struct sides callees = {0};
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
    free(callers.items);
    free(callees.items);
    numbermap_free(&callers.by_key);
    numbermap_free(&callees.by_key);
    return result;
}
