/* SPDX-License-Identifier: MIT */
/* checkscope.c: see checkscope.h. */
#include "analyze/report/checkscope.h"

#include "analyze/replay/accounts.h"

#include <stdlib.h>
#include <string.h>

/* An instance that is open. */
struct instance {
    uint64_t id;
    uint32_t stream; /* of the thread that began it */
    uint64_t cost;   /* bytes, or allocations in units of 1 / TALLY_ONE */
};

struct counting {
    struct checkscope *scope;
    const struct model *model;
    struct instance *open;
    size_t open_count;
    size_t capacity;
    uint64_t *by_context;
};

static uint64_t in_whole(const struct counting *counting, uint64_t cost) {
    return counting->scope->metric == METRIC_ALLOCATIONS ? (cost + TALLY_ONE / 2) / TALLY_ONE
                                                         : cost;
}

static int open_instance(struct counting *counting, const struct timeorder_event *event) {
    if (counting->open_count == counting->capacity) {
        size_t capacity = counting->capacity != 0 ? counting->capacity * 2 : 16;
        struct instance *open = realloc(counting->open, capacity * sizeof *open);
        if (open == NULL) {
            return -1;
        }
        counting->open = open;
        counting->capacity = capacity;
    }
    counting->open[counting->open_count++] =
        (struct instance){.id = event->event.id, .stream = event->stream};
    return 0;
}

static void close_instance(struct counting *counting, size_t index) {
    struct checkscope *scope = counting->scope;
    uint64_t cost = in_whole(counting, counting->open[index].cost);
    scope->instances++;
    scope->sum += cost;
    scope->most = cost > scope->most ? cost : scope->most;
    counting->open[index] = counting->open[--counting->open_count];
}

static int see_mark(void *context, const struct timeorder_event *event) {
    struct counting *counting = context;
    if (event->event.kind != EVENT_MARK) {
        return 0;
    }
    if (event->event.operation == MEMTRACE_MARK_SCOPE_BEGIN) {
        bool is_it =
            event->event.text != NULL && strcmp(event->event.text, counting->scope->name) == 0;
        return is_it ? open_instance(counting, event) : 0;
    }
    if (event->event.operation != MEMTRACE_MARK_SCOPE_END) {
        return 0;
    }
    for (size_t i = counting->open_count; i-- > 0;) {
        if (counting->open[i].id == event->event.id) {
            close_instance(counting, i);
            break;
        }
    }
    return 0;
}

static bool is_heap(const struct counting *counting, const struct life *life) {
    const struct model_context *context = model_find(counting->model, life->context);
    return context == NULL || context->class == MODEL_HEAP;
}

static int see_life(void *context, const struct life *life) {
    struct counting *counting = context;
    bool bytes = counting->scope->metric != METRIC_ALLOCATIONS;
    uint64_t cost;
    bool inside = false;
    if (counting->open_count == 0 || life->is_inherited || !is_heap(counting, life)) {
        return 0;
    }
    cost = bytes ? life_bytes(life) : life_units(life);
    for (size_t i = 0; i < counting->open_count; i++) {
        if (counting->open[i].stream == life->stream) {
            counting->open[i].cost += cost;
            inside = true;
        }
    }
    counting->by_context[life->context] += inside ? cost : 0;
    return 0;
}

static void find_worst(struct counting *counting) {
    uint64_t most = 0;
    for (size_t i = 0; i < counting->model->node_count; i++) {
        if (counting->by_context[i] > most) {
            most = counting->by_context[i];
            counting->scope->worst = (uint32_t)i;
        }
    }
    counting->scope->worst_share = in_whole(counting, most);
}

static int count(struct counting *counting, const struct check_subject *subject,
                 struct error *error) {
    const struct lives_visitor visitor = {
        .begin = see_life, .other = see_mark, .context = counting};
    int status = selection_visit(subject->selection, subject->whole, subject->parts, subject->names,
                                 &visitor, subject->options, error);
    if (status == 0) {
        while (counting->open_count != 0) { /* what the program's end closed */
            close_instance(counting, counting->open_count - 1);
        }
        find_worst(counting);
    }
    return status == 0 ? 0 : -1;
}

int checkscope_count(struct checkscope *scope, const struct check_subject *subject,
                     struct error *error) {
    struct counting counting = {.scope = scope, .model = subject->whole};
    int status;
    if (subject->parts.count == 0) {
        return error_set(error,
                         "%s is a profile, and scopes are in recordings only; make one with "
                         "`memtrace record`",
                         subject->source);
    }
    if (selection_asks_ends(subject->selection)) {
        return error_set(error, "a budget for each scope counts allocations as they are made: "
                                "filters must not ask how their blocks end");
    }
    counting.by_context = calloc(subject->whole->node_count + 1, sizeof *counting.by_context);
    if (counting.by_context == NULL) {
        return error_set(error, "out of memory");
    }
    status = count(&counting, subject, error);
    free(counting.by_context);
    free(counting.open);
    return status;
}
