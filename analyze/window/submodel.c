/* SPDX-License-Identifier: MIT */
/* submodel.c: copies the lasting parts of a model. See submodel.h. */
#include "analyze/window/submodel.h"

#include "analyze/replay/marks.h"

#include <string.h>

static void submodel_copy_modules(struct model *model, const struct model *whole) {
    size_t size = 0;
    size_t used = 0;
    for (size_t i = 0; i < whole->module_count; i++) {
        size += strlen(whole->modules[i].path) + 1;
    }
    model->modules = job_copy(whole->modules, whole->module_count, sizeof *model->modules);
    model->strings = job_array(size + 1, 1);
    for (size_t i = 0; i < whole->module_count; i++) {
        size_t length = strlen(whole->modules[i].path) + 1;
        memcpy(model->strings + used, whole->modules[i].path, length);
        model->modules[i].path = model->strings + used;
        used += length;
    }
}

static void submodel_copy_threads(struct model *model, const struct model *whole) {
    model->threads = job_array(whole->thread_count + 1, sizeof *model->threads);
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
}

void submodel_start(struct model *model, const struct model *whole) {
    *model = (struct model){
        .header = whole->header,
        .nodes = job_copy(whole->nodes, whole->node_count, sizeof *model->nodes),
        .node_count = whole->node_count,
        .before_node = whole->before_node,
        .thread_count = whole->thread_count,
        .module_count = whole->module_count,
        .pools = job_copy(whole->pools, whole->pool_count, sizeof *model->pools),
        .pool_count = whole->pool_count,
        .pool_rooms =
            job_copy(whole->pool_rooms, whole->pool_room_count, sizeof *model->pool_rooms),
        .pool_room_count = whole->pool_room_count,
        .timeline = job_copy(whole->timeline, whole->timeline_count, sizeof *model->timeline),
        .timeline_count = whole->timeline_count,
        .mark_total = whole->mark_total,
        .gaps = job_copy(whole->gaps, whole->gap_count, sizeof *model->gaps),
        .gap_count = whole->gap_count,
        .thinned = job_copy(whole->thinned, whole->thinned_count, sizeof *model->thinned),
        .thinned_count = whole->thinned_count,
        .from_ns = whole->from_ns,
        .to_ns = whole->to_ns,
        .recording = whole->recording,
        .now_ns = whole->now_ns,
        .live = whole->live};
    memcpy(model->damage, whole->damage, sizeof model->damage);
    model->totals.lost = whole->totals.lost;
    model->recording.errors = (struct model_errors){0};
    submodel_copy_modules(model, whole);
    submodel_copy_threads(model, whole);
    marks_copy(model, whole->marks, whole->mark_count);
}

static bool submodel_is_in(const struct model *model, uint64_t time_ns) {
    return model->from_ns <= time_ns && time_ns < model->to_ns;
}

/* Those that reach into the time. Their number. */
static size_t submodel_narrow_gaps(struct model_gap *gaps, size_t count, uint64_t from_ns,
                                   uint64_t to_ns) {
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
        if (submodel_is_in(model, model->marks[i].time_ns)) {
            model->marks[marks++] = model->marks[i];
        }
    }
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (submodel_is_in(model, model->timeline[i].time_ns)) {
            model->timeline[points++] = model->timeline[i];
        }
    }
    if (marks != model->mark_count) {
        model->mark_total = marks;
    }
    model->mark_count = marks;
    model->timeline_count = points;
    model->gap_count = submodel_narrow_gaps(model->gaps, model->gap_count, from_ns, to_ns);
    model->thinned_count =
        submodel_narrow_gaps(model->thinned, model->thinned_count, from_ns, to_ns);
    model->recording.is_counted = false; /* of a window the events alone tell */
}
