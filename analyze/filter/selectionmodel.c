/* SPDX-License-Identifier: MIT */
/*
 * selectionmodel.c: selection_model(). Filters of contexts alone choose from the sums that are
 * there, of the whole or of a view; those of blocks take a pass over the events. See selection.h.
 */
#include "analyze/filter/contextfilter.h"
#include "analyze/filter/selectionpass.h"
#include "analyze/filter/selectionthreads.h"
#include "analyze/profile/load.h"
#include "analyze/profile/timepoints.h"
#include "analyze/window/submodel.h"
#include "analyze/window/view.h"

#include <stdlib.h>
#include <string.h>

/* Totals are the sums over what was selected; how far a part's maximum may be from the true one
 * nobody knows. */
static void finish(struct model *model) {
    model_total_contexts(model);
    if (model->recording.sampled && !model->recording.present) {
        model_total_errors(model);
    }
    model->header.live_bytes = (int64_t)model->totals.live_bytes;
    model->header.maximum_bytes = (int64_t)model->totals.maximum_bytes;
    model->header.peak_error_bytes = 0;
}

/* ---- Filters of contexts ---- */

static void *copy_of(const void *items, size_t count, size_t size) {
    void *copy = calloc(count + 1, size);
    if (copy != NULL && count != 0) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

static int choose_contexts(struct model *model, const struct model *from, const uint32_t *places) {
    model->contexts = calloc(from->context_count + 1, sizeof *model->contexts);
    if (model->contexts == NULL) {
        return -1;
    }
    for (size_t i = 0; i < from->context_count; i++) {
        if (places[from->contexts[i].id] != 0) {
            model->contexts[model->context_count++] = from->contexts[i];
        }
    }
    model->lifetimes = copy_of(from->lifetimes, from->lifetime_count,
                               MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
    model->lifetime_count = model->lifetimes != NULL ? from->lifetime_count : 0;
    return model->lifetimes != NULL ? 0 : -1;
}

/* The contexts of `from` that were selected. What threads did of it, and when, it does not tell. */
static struct model *selected_of(const struct model *from, const uint32_t *places) {
    struct model *model = submodel_new(from);
    if (model == NULL || choose_contexts(model, from, places) != 0) {
        model_free(model);
        return NULL;
    }
    model->thread_count = 0;
    model->timeline_count = 0;
    model->totals.maximum_ns = from->totals.maximum_ns;
    finish(model);
    return model;
}

/* Everything. */
static struct model *copy_whole(const struct model *whole, const uint32_t *places) {
    struct model *model = submodel_new(whole);
    if (model == NULL || choose_contexts(model, whole, places) != 0) {
        model_free(model);
        return NULL;
    }
    free(model->threads);
    model->threads = copy_of(whole->threads, whole->thread_count, sizeof *model->threads);
    model->foreign = copy_of(whole->foreign, whole->foreign_count, sizeof *model->foreign);
    if (model->threads == NULL || model->foreign == NULL) {
        model_free(model);
        return NULL;
    }
    model->foreign_count = whole->foreign_count;
    model->totals = whole->totals;
    model->recording = whole->recording;
    return model;
}

/* ---- Filters of blocks ---- */

struct adding {
    struct selectionsums sums;
    struct selectionthreads *threads;
};
enum { NO_MEMORY = -1 };

static int begin_any(void *context, const struct life *life) {
    struct adding *adding = context;
    selectionsums_begin_any(&adding->sums, life);
    return 0;
}

static int end_any(void *context, const struct life *life) {
    struct adding *adding = context;
    selectionsums_end_any(&adding->sums, life);
    return 0;
}

static int take(void *context, const struct life *life) {
    struct adding *adding = context;
    struct selectionsums_seen seen = selectionsums_see(adding->sums.view, life);
    return selectionsums_take(&adding->sums, life) != 0 ||
                   selectionthreads_take(adding->threads, life, seen) != 0
               ? NO_MEMORY
               : 0;
}

static int add_up(struct adding *adding, const struct selection *selection,
                  struct timeorder_parts parts, const uint32_t *places,
                  const struct replay_options *options, struct error *error) {
    struct model *model = adding->sums.model;
    const struct selectionpass_visitor visitor = {
        .begin = begin_any, .end = end_any, .take = take, .context = adding};
    int result = NO_MEMORY;
    error_set(error, "out of memory while selecting");
    if (timepoints_complete(model, selection->view.from_ns, selection->view.to_ns, 0) != 0) {
        return NO_MEMORY;
    }
    submodel_narrow(model, selection->view.from_ns, selection->view.to_ns);
    adding->threads = selectionthreads_new(model);
    if (adding->threads != NULL && selectionsums_start(&adding->sums) == 0) {
        result = selectionpass_run(selection, adding->sums.whole, parts, places, &visitor, options,
                                   error);
    }
    if (result == 0 && (selectionsums_finish(&adding->sums) != 0 ||
                        selectionthreads_finish(adding->threads) != 0)) {
        result = NO_MEMORY;
    }
    selectionthreads_free(adding->threads);
    selectionsums_end(&adding->sums);
    return result;
}

static struct model *sum_of_lives(const struct selection *selection, const struct model *whole,
                                  struct timeorder_parts parts, const uint32_t *places,
                                  const struct replay_options *options, struct error *error) {
    struct adding adding = {.sums = {.view = selection->view,
                                     .whole = whole,
                                     .model = submodel_new(whole),
                                     .places = places}};
    if (adding.sums.model == NULL) {
        error_set(error, "out of memory while selecting");
        return NULL;
    }
    if (add_up(&adding, selection, parts, places, options, error) != 0) {
        model_free(adding.sums.model);
        return NULL;
    }
    adding.sums.model->totals.maximum_ns = adding.sums.peak.maximum_ns;
    finish(adding.sums.model);
    if (timepoints_put_maximum(adding.sums.model) != 0) {
        error_set(error, "out of memory while selecting");
        model_free(adding.sums.model);
        return NULL;
    }
    return adding.sums.model;
}

/* Gives the model the threads, foreign frees and timeline of `from`, which is freed. */
static void take_threads(struct model *model, struct model *from) {
    struct model kept = *model;
    model->threads = from->threads;
    model->thread_count = from->thread_count;
    model->foreign = from->foreign;
    model->foreign_count = from->foreign_count;
    model->timeline = from->timeline;
    model->timeline_count = from->timeline_count;
    from->threads = kept.threads;
    from->foreign = kept.foreign;
    from->timeline = kept.timeline;
    model_free(from);
}

/* ---- Which of them ---- */

static struct model *choose(const struct selection *selection, const struct model *from,
                            const uint32_t *places, struct error *error) {
    struct model *model =
        selection_is_all(selection) ? copy_whole(from, places) : selected_of(from, places);
    if (model == NULL) {
        error_set(error, "out of memory while selecting");
    }
    return model;
}

/* A view that the recording's index tells. */
static struct model *choose_in_view(const struct selection *selection, const struct model *whole,
                                    struct timeorder_parts parts, const uint32_t *places,
                                    const struct replay_options *options, struct error *error) {
    struct model *view =
        model_view(whole, parts, selection->view.from_ns, selection->view.to_ns, options, error);
    struct model *model;
    if (view == NULL || !selection_asks_contexts(selection)) {
        return view;
    }
    model = choose(selection, view, places, error);
    model_free(view);
    return model;
}

static struct model *of_contexts(const struct selection *selection, const struct model *whole,
                                 struct timeorder_parts parts, const uint32_t *places,
                                 const struct replay_options *options, struct error *error) {
    struct model *model = selection_has_view(selection)
                              ? choose_in_view(selection, whole, parts, places, options, error)
                              : choose(selection, whole, places, error);
    struct model *of_lives;
    if (model == NULL || !selection->wants_threads || parts.count == 0 ||
        !selection_asks_contexts(selection)) {
        return model;
    }
    of_lives = sum_of_lives(selection, whole, parts, places, options, error);
    if (of_lives == NULL) {
        model_free(model);
        return NULL;
    }
    take_threads(model, of_lives);
    return model;
}

static struct model *answer(const struct selection *selection, const struct model *whole,
                            struct timeorder_parts parts, const uint32_t *places,
                            const struct replay_options *options, struct error *error) {
    /* Of a sample, errors of sums come from the single blocks. */
    bool is_sampled =
        whole->recording.sampled && parts.count != 0 && selection_asks_contexts(selection);
    return selection_needs_lives(selection) || is_sampled
               ? sum_of_lives(selection, whole, parts, places, options, error)
               : of_contexts(selection, whole, parts, places, options, error);
}

struct model *selection_model(const struct selection *selection, const struct model *whole,
                              struct timeorder_parts parts, const struct names *names,
                              const struct replay_options *options, struct error *error) {
    bool asks_recording = selection_needs_lives(selection) || selection_has_view(selection);
    struct model *model;
    uint32_t *places;
    if (asks_recording && parts.count == 0) {
        error_set(error, "a profile has neither single blocks nor their times; make a "
                         "recording with `memtrace record`");
        return NULL;
    }
    places = contextfilter_choose(selection, whole, names);
    if (places == NULL) {
        error_set(error, "out of memory while selecting");
        return NULL;
    }
    model = answer(selection, whole, parts, places, options, error);
    free(places);
    return model;
}
