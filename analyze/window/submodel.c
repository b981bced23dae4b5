/* SPDX-License-Identifier: MIT */
/* submodel.c: copies the lasting parts of a model. See submodel.h. */
#include "analyze/window/submodel.h"

#include "analyze/replay/marks.h"

#include <stdlib.h>
#include <string.h>

/* count may be 0. NULL: out of memory. */
static void *copy_of(const void *items, size_t count, size_t size) {
    void *copy = calloc(count + 1, size);
    if (copy != NULL && count != 0) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

static int copy_modules(struct model *model, const struct model *whole) {
    size_t size = 0;
    size_t used = 0;
    for (size_t i = 0; i < whole->module_count; i++) {
        size += strlen(whole->modules[i].path) + 1;
    }
    model->modules = copy_of(whole->modules, whole->module_count, sizeof *model->modules);
    model->strings = malloc(size + 1);
    if (model->modules == NULL || model->strings == NULL) {
        return -1;
    }
    for (size_t i = 0; i < whole->module_count; i++) {
        size_t length = strlen(whole->modules[i].path) + 1;
        memcpy(model->strings + used, whole->modules[i].path, length);
        model->modules[i].path = model->strings + used;
        used += length;
    }
    return 0;
}

static int copy_threads(struct model *model, const struct model *whole) {
    model->threads = calloc(whole->thread_count + 1, sizeof *model->threads);
    if (model->threads == NULL) {
        return -1;
    }
    for (size_t i = 0; i < whole->thread_count; i++) {
        const struct model_thread *from = &whole->threads[i];
        struct model_thread *to = &model->threads[i];
        *to = (struct model_thread){.id = from->id,
                                    .tid = from->tid,
                                    .alive = from->alive,
                                    .start_ns = from->start_ns,
                                    .end_ns = from->end_ns};
        memcpy(to->name, from->name, sizeof to->name);
    }
    return 0;
}

static int copy_gaps(struct model *model, const struct model *whole) {
    model->gaps = copy_of(whole->gaps, whole->gap_count, sizeof *model->gaps);
    model->gap_count = model->gaps != NULL ? whole->gap_count : 0;
    model->thinned = copy_of(whole->thinned, whole->thinned_count, sizeof *model->thinned);
    model->thinned_count = model->thinned != NULL ? whole->thinned_count : 0;
    return model->gaps != NULL && model->thinned != NULL ? 0 : -1;
}

static int copy_parts(struct model *model, const struct model *whole) {
    model->nodes = copy_of(whole->nodes, whole->node_count, sizeof *model->nodes);
    model->pools = copy_of(whole->pools, whole->pool_count, sizeof *model->pools);
    model->timeline = copy_of(whole->timeline, whole->timeline_count, sizeof *model->timeline);
    model->pool_rooms =
        copy_of(whole->pool_rooms, whole->pool_room_count, sizeof *model->pool_rooms);
    model->pool_room_count = model->pool_rooms != NULL ? whole->pool_room_count : 0;
    return model->nodes != NULL && model->pools != NULL && model->timeline != NULL &&
                   copy_modules(model, whole) == 0 && copy_threads(model, whole) == 0 &&
                   copy_gaps(model, whole) == 0 &&
                   marks_copy(model, whole->marks, whole->mark_count) == 0
               ? 0
               : -1;
}

struct model *submodel_new(const struct model *whole) {
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        return NULL;
    }
    *model = (struct model){.header = whole->header,
                            .node_count = whole->node_count,
                            .before_node = whole->before_node,
                            .thread_count = whole->thread_count,
                            .module_count = whole->module_count,
                            .pool_count = whole->pool_count,
                            .timeline_count = whole->timeline_count,
                            .mark_total = whole->mark_total,
                            .from_ns = whole->from_ns,
                            .to_ns = whole->to_ns,
                            .recording = whole->recording,
                            .now_ns = whole->now_ns,
                            .live = whole->live};
    memcpy(model->damage, whole->damage, sizeof model->damage);
    model->totals.lost = whole->totals.lost;
    model->recording.errors = (struct model_errors){0};
    if (copy_parts(model, whole) != 0) {
        model_free(model);
        return NULL;
    }
    return model;
}

static bool is_in(const struct model *model, uint64_t time_ns) {
    return model->from_ns <= time_ns && time_ns < model->to_ns;
}

/* Those that reach into the time. Their number. */
static size_t narrow_gaps(struct model_gap *gaps, size_t count, uint64_t from_ns, uint64_t to_ns) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (gaps[i].to_ns >= from_ns && gaps[i].from_ns < to_ns) {
            gaps[kept++] = gaps[i];
        }
    }
    return kept;
}

void submodel_narrow(struct model *model, uint64_t from_ns, uint64_t to_ns) {
    size_t marks = 0;
    size_t points = 0;
    model->from_ns = from_ns;
    model->to_ns = to_ns;
    for (size_t i = 0; i < model->mark_count; i++) {
        if (is_in(model, model->marks[i].time_ns)) {
            model->marks[marks++] = model->marks[i];
        }
    }
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (is_in(model, model->timeline[i].time_ns)) {
            model->timeline[points++] = model->timeline[i];
        }
    }
    if (marks != model->mark_count) {
        model->mark_total = marks;
    }
    model->mark_count = marks;
    model->timeline_count = points;
    model->gap_count = narrow_gaps(model->gaps, model->gap_count, from_ns, to_ns);
    model->thinned_count = narrow_gaps(model->thinned, model->thinned_count, from_ns, to_ns);
    model->recording.is_counted = false; /* of a window the events alone tell */
}
