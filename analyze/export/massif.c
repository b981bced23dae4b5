/* SPDX-License-Identifier: MIT */
/*
 * massif.c: a massif file: what the heap held at a hundred moments and at its maximum, every tenth
 * of them with the tree of who held it. A profile has the moments of its timeline, and trees of the
 * maximum and the end.
 */
#include "analyze/export/commandline.h"
#include "analyze/export/lifepass.h"
#include "analyze/export/massiftree.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOMENTS = 100, DETAILED = 10 };
#define NS_PER_US UINT64_C(1000)
#define US_PER_MS UINT64_C(1000)

struct massif {
    const struct export *export;
    struct report report; /* for walks along call paths */
    uint64_t *live;       /* by node, as the pass goes */
    uint64_t total;       /* sum of live */
    size_t snapshot;      /* the next one's number */
    unsigned moment;      /* the next one of MOMENTS */
    bool has_peak;        /* is written */
    bool out_of_memory;
};

/* ---- Snapshots ---- */

static void put_snapshot(struct massif *massif, uint64_t time_ns, uint64_t bytes,
                         const char *tree) {
    uint64_t time_us = time_ns / NS_PER_US;
    fprintf(massif->export->out,
            "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 ".%03" PRIu64
            "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
            massif->snapshot++, time_us / US_PER_MS, time_us % US_PER_MS, bytes, tree);
}

/* bytes_of() tells what a context holds. */
static void put_detailed(struct massif *massif, uint64_t time_ns, uint64_t total, const char *kind,
                         uint64_t (*bytes_of)(const struct massif *,
                                              const struct model_context *)) {
    const struct model *model = massif->export->model;
    struct massiftree_item *items = calloc(model->context_count + 1, sizeof *items);
    size_t count = 0;
    if (items == NULL) {
        massif->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint64_t bytes = context->class == MODEL_HEAP ? bytes_of(massif, context) : 0;
        if (bytes != 0) {
            items[count++] =
                (struct massiftree_item){pathwalk(&massif->report, context->path), bytes};
        }
    }
    put_snapshot(massif, time_ns, total, kind);
    massiftree_put(massif->export, items, count, total);
    free(items);
}

static uint64_t bytes_now(const struct massif *massif, const struct model_context *context) {
    return massif->live[context->id];
}

static uint64_t bytes_at_peak(const struct massif *massif, const struct model_context *context) {
    (void)massif;
    return context->peak_bytes;
}

static uint64_t bytes_at_end(const struct massif *massif, const struct model_context *context) {
    (void)massif;
    return context->live_bytes;
}

static void put_peak(struct massif *massif, uint64_t time_ns) {
    if (!massif->has_peak) {
        massif->has_peak = true;
        put_detailed(massif, time_ns, massif->export->model->totals.maximum_bytes, "peak",
                     bytes_at_peak);
    }
}

/* ---- Of a recording ---- */

static uint64_t moment_ns(const struct massif *massif, unsigned moment) {
    const struct model *model = massif->export->model;
    uint64_t from = model->from_ns;
    uint64_t to = model->to_ns < model->now_ns ? model->to_ns : model->now_ns;
    return from + (to > from ? to - from : 0) / MOMENTS * moment;
}

/* The moments that are over before something happens at this time. */
static void put_moments(struct massif *massif, uint64_t time_ns) {
    uint64_t peak_ns = massif->export->model->totals.maximum_ns;
    while (massif->moment < MOMENTS && moment_ns(massif, massif->moment) < time_ns) {
        uint64_t now_ns = moment_ns(massif, massif->moment);
        if (peak_ns != 0 && peak_ns < now_ns) {
            put_peak(massif, peak_ns);
        }
        if (massif->moment % DETAILED == DETAILED - 1) {
            put_detailed(massif, now_ns, massif->total, "detailed", bytes_now);
        } else {
            put_snapshot(massif, now_ns, massif->total, "empty");
        }
        massif->moment++;
    }
    if (peak_ns != 0 && peak_ns < time_ns) {
        put_peak(massif, peak_ns);
    }
}

static int begin(void *context, const struct life *life) {
    struct massif *massif = context;
    if (!lifepass_is_heap(massif->export->model, life->context)) {
        return 0;
    }
    put_moments(massif, life->birth_ns);
    massif->live[life->context] += life_bytes(life);
    massif->total += life_bytes(life);
    return massif->out_of_memory ? -1 : 0;
}

static int end(void *context, const struct life *life) {
    struct massif *massif = context;
    if (life->death_order == LIFE_ALIVE ||
        !lifepass_is_heap(massif->export->model, life->context)) {
        return 0;
    }
    put_moments(massif, life->death_ns);
    massif->live[life->context] -= life_bytes(life);
    massif->total -= life_bytes(life);
    return massif->out_of_memory ? -1 : 0;
}

static int put_recording(struct massif *massif, struct error *error) {
    const struct lives_visitor visitor = {.begin = begin, .end = end, .context = massif};
    massif->live = calloc(massif->export->model->node_count + 1, sizeof *massif->live);
    if (massif->live == NULL) {
        return error_set(error, "out of memory");
    }
    if (lifepass_visit(massif->export, &visitor, error) != 0) {
        return -1;
    }
    put_moments(massif, moment_ns(massif, MOMENTS) + 1);
    return 0;
}

/* ---- Of a profile ---- */

/* The point of the timeline that held most; the maximum came about then. */
static uint64_t highest_point(const struct model *model) {
    const struct memtrace_point *highest = NULL;
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (highest == NULL || model->timeline[i].live_bytes > highest->live_bytes) {
            highest = &model->timeline[i];
        }
    }
    return highest != NULL ? highest->time_ns : model->now_ns;
}

static void put_profile(struct massif *massif) {
    const struct model *model = massif->export->model;
    uint64_t peak_ns =
        model->totals.maximum_ns != 0 ? model->totals.maximum_ns : highest_point(model);
    for (size_t i = 0; i < model->timeline_count && massif->export->selection == NULL; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        if (point->time_ns >= peak_ns) {
            put_peak(massif, peak_ns);
        }
        put_snapshot(massif, point->time_ns,
                     point->live_bytes < model->totals.maximum_bytes ? point->live_bytes
                                                                     : model->totals.maximum_bytes,
                     "empty");
    }
    put_peak(massif, peak_ns);
}

/* ---- The file ---- */

static void put_head(const struct export *export) {
    fputs("desc: memtrace export\ncmd:", export->out);
    commandline_put(export->out, &export->model->header);
    fputs("\ntime_unit: ms\n", export->out);
}

int export_massif(const struct export *export, struct error *error) {
    const struct model *model = export->model;
    struct massif massif = {.export = export,
                            .report = {.model = model,
                                       .names = export->names,
                                       .options = {.all_frames = export->all_frames}}};
    int result = 0;
    uint64_t end_ns = model->to_ns < model->now_ns ? model->to_ns : model->now_ns;
    massif.out_of_memory = names_prepare_all(export->names) != 0;
    put_head(export);
    if (lifepass_possible(export)) {
        result = put_recording(&massif, error);
    } else {
        put_profile(&massif);
    }
    if (result == 0) {
        put_peak(&massif, end_ns);
        put_detailed(&massif, end_ns, model->totals.live_bytes, "detailed", bytes_at_end);
    }
    free(massif.live);
    return result == 0 && massif.out_of_memory ? error_set(error, "out of memory") : result;
}
