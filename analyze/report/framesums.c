/* SPDX-License-Identifier: MIT */
/* framesums.c: see framesums.h. */
#include "analyze/report/framesums.h"

#include "analyze/base/job.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct framewalk {
    struct framesums sums;
    const struct report *report;
    /* The tree of nodes as lists, and what lies under each. */
    uint32_t *first_child;
    uint32_t *next;
    struct framesums_costs *costs; /* first of the node alone, then of its whole subtree */
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

/* The item of a frame. NULL: it has no key. */
static struct framesums_item *framewalk_item(struct framewalk *walk,
                                             const struct names_frame *frame) {
    struct framesums *sums = &walk->sums;
    uint64_t key = framesums_key(sums->by, frame);
    const struct framesums_item *found = framesums_find(sums, key);
    if (sums->by != FRAMESUMS_FUNCTION && key == 0) {
        return NULL;
    }
    if (found != NULL) {
        return &sums->items[found - sums->items];
    }
    job_grow(&sums->items, &sums->room, sums->count, sizeof *sums->items);
    numbermap_set(&sums->by_key, key, (void *)(sums->count + 1));
    sums->items[sums->count] = (struct framesums_item){.frame = frame, .key = key};
    return &sums->items[sums->count++];
}

static void framesums_add(struct framesums_costs *to, const struct framesums_costs *costs) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        metric_add(&to->of[metric], costs->of[metric]);
    }
    to->paths += costs->paths;
}

struct cost framesums_cost(enum metric metric, const struct framesums_costs *costs) {
    return costs->of[metric == METRIC_SHUTDOWN ? METRIC_LEAKED
                     : metric == METRIC_SHORT  ? METRIC_TEMPORARY
                                               : metric];
}

static void framewalk_add_self(struct framewalk *walk) {
    const struct model *model = walk->report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct framesums_costs costs = {.paths = 1};
        const struct names_frame *frame = &unknown_frame;
        struct framesums_item *item;
        size_t count;
        if (context->class != MODEL_HEAP) {
            continue;
        }
        for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
            struct cost cost = metric_cost(metric, context);
            costs.of[metric] = cost.main != 0 ? cost : (struct cost){0};
        }
        if (context->path != 0) {
            frame = names_frames(walk->report->names, model->nodes[context->path].frame, &count);
        }
        framesums_add(&walk->costs[context->path], &costs);
        item = framewalk_item(walk, frame);
        if (item == NULL) {
            continue;
        }
        framesums_add(&item->self, &costs);
        if (context->path == 0) {
            framesums_add(&item->inclusive, &costs);
        }
    }
}

/* Comes to a node (+1) or leaves it (-1). The cost is that of the outermost node it is on: whatever
 * lies below is in there already. */
static void framewalk_visit(struct framewalk *walk, uint32_t id, int step) {
    uint64_t recorded = walk->report->model->nodes[id].frame;
    const struct framesums_costs *costs = &walk->costs[id];
    const struct names_frame *frames;
    size_t count;
    if (recorded < MEMTRACE_FRAME_CLASSES || costs->paths == 0) {
        return;
    }
    frames = names_frames(walk->report->names, recorded, &count);
    for (size_t i = 0; i < count; i++) {
        struct framesums_item *item = framewalk_item(walk, &frames[i]);
        if (item == NULL) {
            continue;
        }
        if (step > 0 && item->active == 0) {
            framesums_add(&item->inclusive, costs);
        }
        item->active += (uint32_t)step;
    }
}

/* Depth first, without recursion: paths may be of any depth. */
static void framewalk_add_inclusive(struct framewalk *walk) {
    const struct model *model = walk->report->model;
    uint32_t at;
    for (size_t id = model->node_count; id-- > 1;) {
        uint32_t parent = model->nodes[id].parent;
        framesums_add(&walk->costs[parent], &walk->costs[id]);
        walk->next[id] = walk->first_child[parent];
        walk->first_child[parent] = (uint32_t)id;
    }
    at = walk->first_child[0];
    while (at != 0) {
        framewalk_visit(walk, at, 1);
        if (walk->first_child[at] != 0) {
            at = walk->first_child[at];
            continue;
        }
        while (at != 0) {
            framewalk_visit(walk, at, -1);
            if (walk->next[at] != 0) {
                at = walk->next[at];
                break;
            }
            at = model->nodes[at].parent;
        }
    }
}

struct framesums framesums_make(const struct report *report, enum framesums_by by) {
    size_t count = report->model->node_count;
    struct framewalk walk = {.sums = {.by = by}, .report = report};
    walk.first_child = job_array(count, sizeof *walk.first_child);
    walk.next = job_array(count, sizeof *walk.next);
    walk.costs = job_array(count, sizeof *walk.costs);
    framewalk_add_self(&walk);
    framewalk_add_inclusive(&walk);
    job_release(walk.first_child);
    job_release(walk.next);
    job_release(walk.costs);
    return walk.sums;
}

/* ---- Order ---- */

static int framesums_compare(uint64_t left, uint64_t right) {
    return (left < right) - (left > right);
}

static int framesums_dearest_first(const void *left, const void *right, void *context) {
    enum metric metric = *(const enum metric *)context;
    const struct framesums_item *a = left;
    const struct framesums_item *b = right;
    int order = framesums_compare(framesums_cost(metric, &a->self).main,
                                  framesums_cost(metric, &b->self).main);
    if (order == 0) {
        order = framesums_compare(framesums_cost(metric, &a->inclusive).main,
                                  framesums_cost(metric, &b->inclusive).main);
    }
    return order != 0 ? order : framesums_compare(b->key, a->key);
}

void framesums_sort(struct framesums *sums, enum metric metric) {
    if (sums->count != 0) {
        qsort_r(sums->items, sums->count, sizeof *sums->items, framesums_dearest_first, &metric);
    }
    for (size_t i = 0; i < sums->count; i++) {
        numbermap_set(&sums->by_key, sums->items[i].key, (void *)(i + 1));
    }
}
