/* SPDX-License-Identifier: MIT */
/* framesums.c: see framesums.h. */
#include "analyze/report/framesums.h"

#include "analyze/base/array.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The tree of nodes as lists, and what lies under each. */
struct forest {
    uint32_t *first_child;
    uint32_t *next;
    struct framesums_costs *costs; /* first of the node alone, then of its whole subtree */
};

struct walking {
    struct framesums *sums;
    const struct report *report;
    struct forest forest;
};

static const struct names_frame unknown_frame = {.module = ""};

uint64_t framesums_key(enum framesums_by by, const struct names_frame *frame) {
    uint64_t key;
    if (by == FRAMESUMS_FUNCTION) {
        return frame->function_key;
    }
    if (frame->file == NULL || (by == FRAMESUMS_LINE && frame->line == 0)) {
        return 0;
    }
    key = XXH3_64bits_withSeed(frame->file, strlen(frame->file),
                               by == FRAMESUMS_LINE ? frame->line : 0);
    return key != 0 ? key : 1;
}

const struct framesums_item *framesums_find(const struct framesums *sums, uint64_t key) {
    size_t place = (size_t)(uintptr_t)numbermap_get(&sums->by_key, key);
    return place != 0 ? &sums->items[place - 1] : NULL;
}

/* The item of a frame that has a key. NULL: out of memory. */
static struct framesums_item *item_of(struct framesums *sums, uint64_t key,
                                      const struct names_frame *frame) {
    const struct framesums_item *found = framesums_find(sums, key);
    if (found != NULL) {
        return &sums->items[found - sums->items];
    }
    if (array_grow(&sums->items, &sums->room, sums->count, sizeof *sums->items) != 0 ||
        numbermap_put(&sums->by_key, key, (void *)(sums->count + 1)) != 0) {
        return NULL;
    }
    sums->items[sums->count] = (struct framesums_item){.frame = frame, .key = key};
    return &sums->items[sums->count++];
}

static void add(struct framesums_costs *to, const struct framesums_costs *costs) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        metric_add(&to->of[metric], costs->of[metric]);
    }
    to->paths += costs->paths;
}

static struct framesums_costs costs_of(const struct model_context *context) {
    struct framesums_costs costs = {.paths = 1};
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        struct cost cost = metric_cost(metric, context);
        costs.of[metric] = cost.main != 0 ? cost : (struct cost){0};
    }
    return costs;
}

struct cost framesums_cost(enum metric metric, const struct framesums_costs *costs) {
    return costs->of[metric == METRIC_SHUTDOWN ? METRIC_LEAKED
                     : metric == METRIC_SHORT  ? METRIC_TEMPORARY
                                               : metric];
}

static int add_self(struct walking *walking) {
    const struct model *model = walking->report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        const struct framesums_costs costs = costs_of(context);
        const struct names_frame *frame = &unknown_frame;
        struct framesums_item *item;
        uint64_t key;
        size_t count;
        if (context->class != MODEL_HEAP) {
            continue;
        }
        if (context->path != 0) {
            frame = names_frames(walking->report->names, model->nodes[context->path].frame, &count);
        }
        add(&walking->forest.costs[context->path], &costs);
        key = framesums_key(walking->sums->by, frame);
        if (walking->sums->by != FRAMESUMS_FUNCTION && key == 0) {
            continue;
        }
        item = item_of(walking->sums, key, frame);
        if (item == NULL) {
            return -1;
        }
        add(&item->self, &costs);
        if (context->path == 0) {
            add(&item->inclusive, &costs);
        }
    }
    return 0;
}

static void link_nodes(const struct model *model, struct forest *forest) {
    for (size_t id = model->node_count; id-- > 1;) {
        uint32_t parent = model->nodes[id].parent;
        add(&forest->costs[parent], &forest->costs[id]);
        forest->next[id] = forest->first_child[parent];
        forest->first_child[parent] = (uint32_t)id;
    }
}

/* Comes to a node (+1) or leaves it (-1). The cost is that of the outermost node it is on: whatever
 * lies below is in there already. */
static int visit(struct walking *walking, uint32_t id, int step) {
    struct framesums *sums = walking->sums;
    uint64_t recorded = walking->report->model->nodes[id].frame;
    const struct framesums_costs *costs = &walking->forest.costs[id];
    const struct names_frame *frames;
    size_t count;
    if (recorded < MEMTRACE_FRAME_CLASSES || costs->paths == 0) {
        return 0;
    }
    frames = names_frames(walking->report->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = framesums_key(sums->by, &frames[i]);
        struct framesums_item *item;
        if (sums->by != FRAMESUMS_FUNCTION && key == 0) {
            continue;
        }
        item = item_of(sums, key, &frames[i]);
        if (item == NULL) {
            return -1;
        }
        if (step > 0 && item->active == 0) {
            add(&item->inclusive, costs);
        }
        item->active += (uint32_t)step;
    }
    return 0;
}

/* Depth first, without recursion: paths may be of any depth. */
static int walk_nodes(struct walking *walking) {
    const struct model *model = walking->report->model;
    const struct forest *forest = &walking->forest;
    uint32_t at = forest->first_child[0];
    while (at != 0) {
        if (visit(walking, at, 1) != 0) {
            return -1;
        }
        if (forest->first_child[at] != 0) {
            at = forest->first_child[at];
            continue;
        }
        while (at != 0) {
            if (visit(walking, at, -1) != 0) {
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

int framesums_make(struct framesums *sums, const struct report *report, enum framesums_by by) {
    size_t count = report->model->node_count;
    struct walking walking = {.sums = sums, .report = report};
    struct forest *forest = &walking.forest;
    int result = -1;
    *sums = (struct framesums){.by = by};
    *forest = (struct forest){calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)),
                              calloc(count, sizeof(struct framesums_costs))};
    if (forest->first_child != NULL && forest->next != NULL && forest->costs != NULL) {
        result = add_self(&walking);
    }
    if (result == 0) {
        link_nodes(report->model, forest);
        result = walk_nodes(&walking);
    }
    free(forest->first_child);
    free(forest->next);
    free(forest->costs);
    return result;
}

void framesums_free(struct framesums *sums) {
    free(sums->items);
    numbermap_free(&sums->by_key);
    *sums = (struct framesums){0};
}

/* ---- Order ---- */

static int compare(uint64_t left, uint64_t right) {
    return (left < right) - (left > right);
}

static int dearest_first(const void *left, const void *right, void *context) {
    enum metric metric = *(const enum metric *)context;
    const struct framesums_item *a = left;
    const struct framesums_item *b = right;
    int order =
        compare(framesums_cost(metric, &a->self).main, framesums_cost(metric, &b->self).main);
    if (order == 0) {
        order = compare(framesums_cost(metric, &a->inclusive).main,
                        framesums_cost(metric, &b->inclusive).main);
    }
    return order != 0 ? order : compare(b->key, a->key);
}

void framesums_sort(struct framesums *sums, enum metric metric) {
    if (sums->count != 0) {
        qsort_r(sums->items, sums->count, sizeof *sums->items, dearest_first, &metric);
    }
    for (size_t i = 0; i < sums->count; i++) { /* the key is there: nothing grows */
        numbermap_put(&sums->by_key, sums->items[i].key, (void *)(i + 1));
    }
}
