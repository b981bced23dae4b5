/* SPDX-License-Identifier: MIT */
/*
 * heaptrack.c: a heaptrack data file, in which every block begins and ends as in the recording.
 *
 * heaptrack calls a block temporary if its end is the very next line behind its beginning; here it
 * is one that its thread freed before the thread's next allocation. So that heaptrack's readers
 * count what memtrace counts, the beginning of each thread's newest block is held back until it is
 * known which of the two it is. That lowers what the file holds for a moment, so all that is held
 * back is written where the maximum is reached: the readers find the same maximum, and the same
 * blocks in it.
 */
#include "analyze/export/heaptracktext.h"
#include "analyze/export/lifepass.h"
#include "analyze/export/packedout.h"

#include <stdlib.h>

enum { CULLED_MOST = 200 * 1000 * 1000 }; /* that are made up from their sums */

/* A stream's newest block, not written yet. */
struct pending {
    bool is_set;
    struct event_block block;
    uint64_t order;
    uint64_t size;
    uint32_t context;
};

struct pass {
    struct heaptracktext text;
    const struct model *model;
    struct pending *pending; /* by stream */
    size_t stream_count;
    uint64_t live; /* as if nothing were held back */
    uint64_t maximum;
    bool reached;
};

/* ---- All events ---- */

static void write_pending(struct pass *pass, struct pending *pending) {
    if (pending->is_set) {
        pending->is_set = false;
        heaptracktext_alloc(&pass->text, pending->context, pending->size);
    }
}

static int by_order(const void *left, const void *right) {
    const struct pending *a = left;
    const struct pending *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

/* In the order of their births; the array is then no longer by stream, but all are written. */
static void write_all_pending(struct pass *pass) {
    if (pass->stream_count != 0) {
        qsort(pass->pending, pass->stream_count, sizeof *pass->pending, by_order);
    }
    for (size_t i = 0; i < pass->stream_count; i++) {
        write_pending(pass, &pass->pending[i]);
    }
}

/* NULL: out of memory. */
static struct pending *pending_of(struct pass *pass, uint32_t stream) {
    if (stream >= pass->stream_count) {
        size_t count = (size_t)stream + 1;
        struct pending *grown = reallocarray(pass->pending, count, sizeof *grown);
        if (grown == NULL) {
            pass->text.out_of_memory = true;
            return NULL;
        }
        for (size_t i = pass->stream_count; i < count; i++) {
            grown[i] = (struct pending){0};
        }
        pass->pending = grown;
        pass->stream_count = count;
    }
    return &pass->pending[stream];
}

static int begin(void *context, const struct life *life) {
    struct pass *pass = context;
    struct pending *pending;
    if (!lifepass_is_heap(pass->model, life->context)) {
        return 0;
    }
    pending = pending_of(pass, life->stream);
    if (pending == NULL) {
        return -1;
    }
    heaptracktext_time(&pass->text, life->birth_ns);
    write_pending(pass, pending);
    *pending = (struct pending){.is_set = true,
                                .block = life->block,
                                .order = life->birth_order,
                                .size = life_bytes(life),
                                .context = life->context};
    pass->live += pending->size;
    if (!pass->reached && pass->live >= pass->maximum) {
        pass->reached = true;
        write_all_pending(pass);
    }
    return pass->text.out_of_memory ? -1 : 0;
}

static int end(void *context, const struct life *life) {
    struct pass *pass = context;
    struct pending *pending;
    bool is_held_back;
    if (life->death_order == LIFE_ALIVE || !lifepass_is_heap(pass->model, life->context)) {
        return 0;
    }
    pending = pending_of(pass, life->stream);
    if (pending == NULL) {
        return -1;
    }
    heaptracktext_time(&pass->text, life->death_ns);
    is_held_back = pending->is_set && pending->block.thread == life->block.thread &&
                   pending->block.number == life->block.number;
    if (is_held_back) {
        write_pending(pass, pending);
    }
    heaptracktext_free(&pass->text, life->context, life_bytes(life), life->is_temporary);
    pass->live -= life_bytes(life);
    return pass->text.out_of_memory ? -1 : 0;
}

/* ---- What the model knows without its events ---- */

/* What a pass before the real one finds: the maximum of what was selected, and which costs of each
 * context are no lives, because a recording culled them. */
struct survey {
    const struct model *model;
    uint64_t live;
    uint64_t maximum;
    uint64_t *counts; /* by node */
    uint64_t *bytes;
};

static int survey_begin(void *context, const struct life *life) {
    struct survey *survey = context;
    if (lifepass_is_heap(survey->model, life->context)) {
        survey->live += life_bytes(life);
        survey->maximum = survey->live > survey->maximum ? survey->live : survey->maximum;
        survey->counts[life->context]++;
        survey->bytes[life->context] += life_bytes(life);
    }
    return 0;
}

static int survey_end(void *context, const struct life *life) {
    struct survey *survey = context;
    if (life->death_order != LIFE_ALIVE && lifepass_is_heap(survey->model, life->context)) {
        survey->live -= life_bytes(life);
    }
    return 0;
}

static bool has_culled(const struct export *export) {
    for (size_t part = 0; part < export->parts.count; part++) {
        const struct recording *recording = export->parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_CULLED) {
                return true;
            }
        }
    }
    return false;
}

/* Those of a context that are no lives. */
static uint64_t culled_of(const struct survey *survey, const struct model_context *context) {
    uint64_t count = survey->counts[context->id];
    return context->class == MODEL_HEAP && context->allocations > count
               ? context->allocations - count
               : 0;
}

/* Blocks of `bytes` together, which begin and end at once; the first ones are a byte larger where
 * it does not come out even. */
static void put_brief(struct heaptracktext *text, uint32_t context, uint64_t count,
                      uint64_t bytes) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = bytes / count + (i < bytes % count);
        heaptracktext_alloc(text, context, size);
        heaptracktext_free(text, context, size, false);
    }
}

/* At the beginning, where they raise no maximum. 0, or -1: there are too many. */
static int put_culled(struct heaptracktext *text, const struct survey *survey,
                      struct error *error) {
    const struct model *model = survey->model;
    uint64_t sum = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        if (__builtin_add_overflow(sum, culled_of(survey, &model->contexts[i]), &sum) ||
            sum > CULLED_MOST) {
            return error_set(error, "heaptrack's format is made of events, and this recording left "
                                    "out too many to make them up: record without `--cull-below`");
        }
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint64_t bytes = survey->bytes[context->id];
        put_brief(text, context->id, culled_of(survey, context),
                  context->total_bytes > bytes ? context->total_bytes - bytes : 0);
    }
    return 0;
}

/* The maximum to reach, and culled blocks. 0 or -1. */
static int look_ahead(const struct export *export, struct pass *pass, struct error *error) {
    const struct lives_visitor visitor = {.begin = survey_begin, .end = survey_end};
    struct lives_visitor looking = visitor;
    struct survey survey = {.model = export->model};
    bool is_culled = has_culled(export) && !export->model->recording.sampled;
    int result = -1;
    pass->maximum = export->model->totals.maximum_bytes;
    if (export->selection == NULL && !is_culled) {
        return 0;
    }
    looking.context = &survey;
    survey.counts = calloc(export->model->node_count, sizeof *survey.counts);
    survey.bytes = calloc(export->model->node_count, sizeof *survey.bytes);
    if (survey.counts != NULL && survey.bytes != NULL) {
        result = lifepass_visit(export, &looking, error);
    } else {
        error_set(error, "out of memory");
    }
    if (result == 0) {
        pass->maximum = survey.maximum;
        result = is_culled ? put_culled(&pass->text, &survey, error) : 0;
    }
    free(survey.counts);
    free(survey.bytes);
    return result;
}

/* ---- The file ---- */

static int put_events(const struct export *export, struct pass *pass, struct error *error) {
    const struct lives_visitor visitor = {.begin = begin, .end = end, .context = pass};
    if (export->model->recording.sampled) {
        fputs("# a sampled recording: sizes are the bytes that an allocation stands for\n",
              pass->text.out);
    }
    if (look_ahead(export, pass, error) != 0 || lifepass_visit(export, &visitor, error) != 0) {
        return -1;
    }
    write_all_pending(pass);
    return 0;
}

static int put_file(const struct export *export, FILE *out, struct error *error) {
    struct pass pass = {.model = export->model};
    int result = -1;
    if (names_prepare_all(export->names) != 0 ||
        heaptracktext_start(&pass.text, out, export) != 0) {
        error_set(error, "out of memory");
    } else if (lifepass_possible(export)) {
        result = put_events(export, &pass, error);
    } else {
        error_set(error, "heaptrack's format is made of events: %s",
                  export->parts.count == 0
                      ? "a profile has none, so make a recording with `memtrace record`"
                      : "filters that ask how a block ended do not go with it");
    }
    if (result == 0) {
        heaptracktext_time(&pass.text, export->model->now_ns);
    }
    if (result == 0 && (pass.text.out_of_memory || pass.text.texts.out_of_memory ||
                        pass.text.places.out_of_memory || pass.text.infos.out_of_memory)) {
        result = error_set(error, "out of memory");
    }
    heaptracktext_end(&pass.text);
    free(pass.pending);
    return result;
}

int export_heaptrack(const struct export *export, struct error *error) {
    FILE *packed = packedout_open(export->out, packing_of(export->name));
    int result;
    if (packed == NULL) {
        return error_set(error, "out of memory");
    }
    result = put_file(export, packed, error);
    /* That it could not be written the caller sees. */
    packedout_close(packed, export->out);
    return result;
}
