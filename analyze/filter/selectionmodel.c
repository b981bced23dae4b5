/* SPDX-License-Identifier: MIT */
/*
 * selectionmodel.c: selection_model(). Filters of contexts alone choose from the sums that are
 * there, of the whole or of a view; those of blocks take a pass over the events. See selection.h.
 */
#include "analyze/filter/selection.h"

#include "analyze/base/job.h"
#include "analyze/model/model.h"
#include "analyze/profile/load.h"
#include "analyze/profile/timepoints.h"
#include "analyze/replay/accounts.h"
#include "analyze/window/submodel.h"
#include "analyze/window/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Costs of selected lives, added up by context, with what they held when the whole process
 * held most in a view.
 *
 * The maximum takes one pass, though whether a life is selected is often known only when it is
 * over: the moment of the maximum so far, `peak.place`, is a place in the order of the replay. A
 * life that is taken held its bytes then if its birth is not behind that place and its death is;
 * where this differs from what it holds at the end, the cell's `adjust` keeps the difference. A
 * later and higher maximum makes all adjustments void, and each life that was taken before it is
 * over by then or holds its bytes at both times. So
 *   bytes at the maximum == live bytes at the end + adjust, if adjust is of the last maximum
 * ---- */

struct sums_cell {
    struct sum sum; /* counts in units of 1 / ACCOUNTS_ONE; without peak_bytes */
    uint64_t live_bytes;
    uint64_t base_units; /* held when the view begins */
    uint64_t adjust;     /* wraps: it may be less than 0 */
    uint32_t epoch;      /* of adjust */
    double total_variance;
    double live_variance;
};

struct sums {
    struct selection_times view;
    const struct model *whole;
    struct model *model;     /* to be filled: submodel_new(whole) */
    const uint32_t *places;  /* of selection_contexts() */
    struct sums_cell *cells; /* whole->context_count */
    struct sums_peak {
        uint64_t held; /* by the whole heap, more than at the view's begin; wraps */
        uint64_t maximum;
        uint64_t place;      /* the last one at which the maximum stood; not while at_maximum */
        uint64_t maximum_ns; /* when it was reached */
        uint32_t epoch;
        bool at_maximum;
    } peak;
    double allocation_variance;
    double adjust_variance; /* as adjust, of all cells */
    uint32_t adjust_epoch;
};

/* How a view sees a life that is not wholly outside of it. */
struct sums_seen {
    bool at_all;
    bool born; /* in the view, not before */
    bool died; /* in it, not behind */
};

static void sums_start(struct sums *sums) {
    sums->peak = (struct sums_peak){.maximum_ns = sums->view.from_ns, .at_maximum = true};
    sums->cells = job_array(sums->whole->context_count + 1, sizeof *sums->cells);
}

static bool is_in(struct selection_times view, uint64_t time_ns) {
    return view.from_ns <= time_ns && time_ns < view.to_ns;
}

static struct sums_seen sums_see(struct selection_times view, const struct life *life) {
    return (struct sums_seen){
        .at_all = life->birth_ns < view.to_ns && life->death_ns >= view.from_ns,
        .born = life->birth_ns >= view.from_ns,
        .died = life->death_ns < view.to_ns,
    };
}

static bool is_heap(const struct sums *sums, const struct life *life) {
    return contexts_class(sums->whole->nodes[life->context].frame) == MODEL_HEAP;
}

/* Every block of the recording, in order: its birth, its end. */
static void sums_begin_any(struct sums *sums, const struct life *life) {
    struct sums_peak *peak = &sums->peak;
    if (!is_in(sums->view, life->birth_ns) || !is_heap(sums, life)) {
        return;
    }
    peak->held += life_bytes(life);
    if ((int64_t)(peak->held - peak->maximum) > 0) {
        peak->maximum = peak->held;
        peak->maximum_ns = life->birth_ns;
        peak->at_maximum = true;
    }
}

static void sums_end_any(struct sums *sums, const struct life *life) {
    struct sums_peak *peak = &sums->peak;
    uint64_t bytes = life_bytes(life);
    if (!is_in(sums->view, life->death_ns) || bytes == 0 || !is_heap(sums, life)) {
        return;
    }
    peak->held -= bytes;
    if (peak->at_maximum) {
        peak->at_maximum = false;
        peak->place = life->death_order - 1;
        peak->epoch++;
    }
}

/* As in accounts.c: a sampled block of size s with weight w adds w (w - s) to a sum's variance. */
static double variance_of(const struct life *life) {
    double weight = (double)life->weight;
    return life->weight > life->size ? weight * (weight - (double)life->size) : 0;
}

static void adjust(struct sums *sums, struct sums_cell *cell, const struct life *life, bool is_heap,
                   int sign) {
    if (cell->epoch != sums->peak.epoch) {
        cell->epoch = sums->peak.epoch;
        cell->adjust = 0;
    }
    cell->adjust += sign > 0 ? life_bytes(life) : -life_bytes(life);
    if (sums->adjust_epoch != sums->peak.epoch) {
        sums->adjust_epoch = sums->peak.epoch;
        sums->adjust_variance = 0;
    }
    sums->adjust_variance += is_heap ? sign * variance_of(life) : 0;
}

static void note_peak(struct sums *sums, struct sums_cell *cell, const struct life *life,
                      struct sums_seen seen) {
    const struct sums_peak *peak = &sums->peak;
    bool held = (!seen.born || life->birth_order <= peak->place) &&
                (!seen.died || life->death_order > peak->place);
    if (!peak->at_maximum && held == seen.died) {
        adjust(sums, cell, life, is_heap(sums, life), seen.died ? 1 : -1);
    }
}

static void take_birth(struct sums *sums, struct sums_cell *cell, const struct life *life) {
    double size = life->size != 0 ? (double)life->size : 1;
    cell->sum.alloc_bytes += life_bytes(life);
    cell->sum.alloc_count += life_units(life);
    if (life->weight != 0 && is_heap(sums, life)) {
        cell->total_variance += variance_of(life);
        sums->allocation_variance += variance_of(life) / (size * size);
    }
}

static uint32_t ticks_of(const struct life *life) {
    return (uint32_t)((life->death_ns >> MEMTRACE_TICK_SHIFT) -
                      (life->birth_ns >> MEMTRACE_TICK_SHIFT));
}

static void take_death(struct sums *sums, struct sums_cell *cell, const struct life *life) {
    uint64_t *buckets = contexts_buckets(sums->model, &cell->sum);
    cell->sum.free_bytes += life_bytes(life);
    cell->sum.free_count += life_units(life);
    cell->sum.temporary += life->is_temporary && is_heap(sums, life) ? life_units(life) : 0;
    buckets[contexts_bucket(ticks_of(life))] += life_units(life);
}

/* A selected one, at its end or later. */
static void sums_take(struct sums *sums, const struct life *life) {
    struct sums_seen seen = sums_see(sums->view, life);
    struct sums_cell *cell = &sums->cells[sums->places[life->context] - 1];
    if (!seen.at_all) {
        return;
    }
    if (seen.born) {
        take_birth(sums, cell, life);
    } else {
        cell->base_units += life_units(life);
    }
    if (!seen.died) {
        cell->live_bytes += life_bytes(life);
        cell->live_variance += is_heap(sums, life) ? variance_of(life) : 0;
    }
    note_peak(sums, cell, life, seen);
    if (seen.died) {
        take_death(sums, cell, life);
    }
}

static double root(double variance) {
    return variance > 0 ? sqrt(variance) : 0;
}

/* So that they are what came and did not go, also where estimates were rounded. */
static uint64_t live_blocks(const struct sums_cell *cell) {
    uint64_t came = slice_whole_count(cell->base_units) + slice_whole_count(cell->sum.alloc_count);
    uint64_t gone = slice_whole_count(cell->sum.free_count);
    return came > gone ? came - gone : 0;
}

static struct model_context context_from(const struct sums *sums, const struct model_context *like,
                                         const struct sums_cell *cell) {
    const struct sums_peak *peak = &sums->peak;
    bool is_adjusted = !peak->at_maximum && cell->epoch == peak->epoch;
    return (struct model_context){
        .id = like->id,
        .parent = like->parent,
        .frame = like->frame,
        .path = like->path,
        .pool = like->pool,
        .class = like->class,
        .live_bytes = cell->live_bytes,
        .live_blocks = live_blocks(cell),
        .peak_bytes = cell->live_bytes + (is_adjusted ? cell->adjust : 0),
        .total_bytes = cell->sum.alloc_bytes,
        .allocations = slice_whole_count(cell->sum.alloc_count),
        .freed_bytes = cell->sum.free_bytes,
        .frees = slice_whole_count(cell->sum.free_count),
        .temporary = slice_whole_count(cell->sum.temporary),
        .lifetimes = cell->sum.lifetimes != 0
                         ? (uint64_t)(cell->sum.lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS
                         : MODEL_NO_LIFETIMES,
        .total_error_bytes = root(cell->total_variance),
        .live_error_bytes = root(cell->live_variance),
    };
}

static void set_errors(const struct sums *sums) {
    const struct sums_peak *peak = &sums->peak;
    bool is_adjusted = !peak->at_maximum && sums->adjust_epoch == peak->epoch;
    double total = 0;
    double live = 0;
    for (size_t i = 0; i < sums->whole->context_count; i++) {
        total += sums->cells[i].total_variance;
        live += sums->cells[i].live_variance;
    }
    sums->model->recording.errors = (struct model_errors){
        .total_bytes = root(total),
        .allocations = root(sums->allocation_variance),
        .live_bytes = root(live),
        .maximum_bytes = root(live + (is_adjusted ? sums->adjust_variance : 0)),
    };
}

/* Fills the model's contexts, lifetimes and errors. */
static void sums_finish(struct sums *sums) {
    struct model *model = sums->model;
    model->contexts = job_array(sums->whole->context_count + 1, sizeof *model->contexts);
    for (size_t i = 0; i < sums->whole->context_count; i++) {
        const struct sums_cell *cell = &sums->cells[i];
        if ((cell->sum.alloc_count | cell->sum.free_count | cell->base_units) != 0) {
            model->contexts[model->context_count++] =
                context_from(sums, &sums->whole->contexts[i], cell);
        }
    }
    for (size_t i = 0; i < model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS; i++) {
        model->lifetimes[i] = slice_whole_count(model->lifetimes[i]);
    }
    set_errors(sums);
}

/* ---- Which thread allocated and freed the selected lives, and how many bytes they held at each
 * point of the timeline. Only blocks of the heap count ---- */

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

struct counts {
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
    uint64_t foreign_units, foreign_bytes;
    uint64_t live_bytes;
};

/* By how much more is held and was allocated at a point than at the one before it. */
struct step {
    uint64_t live_bytes; /* wraps: it may fall */
    uint64_t alloc_units, alloc_bytes;
};

struct threads {
    struct model *model;
    struct counts counts[THREADS];
    struct foreign foreign; /* blocks in units */
    struct step *steps;     /* model->timeline_count + 1: the last one is behind all points */
};

/* model: submodel_start(), and narrowed to the view. */
static struct threads *threads_new(struct model *model) {
    struct threads *threads = job_array(1, sizeof *threads);
    threads->model = model;
    threads->steps = job_array(model->timeline_count + 1, sizeof *threads->steps);
    return threads;
}

static void threads_free(struct threads *threads) {
    foreign_free(&threads->foreign);
    job_release(threads->steps);
    job_release(threads);
}

static void take_steps(struct threads *threads, const struct life *life, struct sums_seen seen) {
    struct step *birth =
        &threads->steps[seen.born ? timepoints_place(threads->model, life->birth_ns) : 0];
    birth->live_bytes += life_bytes(life);
    birth->alloc_bytes += seen.born ? life_bytes(life) : 0;
    birth->alloc_units += seen.born ? life_units(life) : 0;
    if (seen.died) {
        threads->steps[timepoints_place(threads->model, life->death_ns)].live_bytes -=
            life_bytes(life);
    }
}

static void finish_timeline(struct threads *threads) {
    struct step sum = {0};
    for (size_t i = 0; i < threads->model->timeline_count; i++) {
        struct memtrace_point *point = &threads->model->timeline[i];
        sum.live_bytes += threads->steps[i].live_bytes;
        sum.alloc_bytes += threads->steps[i].alloc_bytes;
        sum.alloc_units += threads->steps[i].alloc_units;
        point->live_bytes = sum.live_bytes;
        point->alloc_bytes = sum.alloc_bytes;
        point->alloc_count = slice_whole_count(sum.alloc_units);
    }
}

static void take_free(struct threads *threads, const struct life *life) {
    struct counts *counts = &threads->counts[life->death_thread];
    counts->free_units += life_units(life);
    counts->free_bytes += life_bytes(life);
    if (life->death_thread == life->block.thread) {
        return;
    }
    counts->foreign_units += life_units(life);
    counts->foreign_bytes += life_bytes(life);
    foreign_add(&threads->foreign, (struct model_foreign){.freer = life->death_thread,
                                                          .owner = life->block.thread,
                                                          .blocks = life_units(life),
                                                          .bytes = life_bytes(life)});
}

static void threads_take(struct threads *threads, const struct life *life, struct sums_seen seen) {
    bool is_own = !life->is_inherited && life->block.thread < THREADS;
    if (!seen.at_all || contexts_class(threads->model->nodes[life->context].frame) != MODEL_HEAP) {
        return;
    }
    take_steps(threads, life, seen);
    if (is_own && seen.born) {
        threads->counts[life->block.thread].alloc_units += life_units(life);
        threads->counts[life->block.thread].alloc_bytes += life_bytes(life);
    }
    if (is_own && !seen.died) {
        threads->counts[life->block.thread].live_bytes += life_bytes(life);
    }
    if (seen.died && life->death_thread < THREADS) {
        take_free(threads, life);
    }
}

static void finish_thread(struct model_thread *thread, const struct counts *counts) {
    thread->allocations = slice_whole_count(counts->alloc_units);
    thread->total_bytes = counts->alloc_bytes;
    thread->frees = slice_whole_count(counts->free_units);
    thread->freed_bytes = counts->free_bytes;
    thread->foreign_frees = slice_whole_count(counts->foreign_units);
    thread->foreign_freed_bytes = counts->foreign_bytes;
    thread->live_bytes = (int64_t)counts->live_bytes;
}

static bool is_used(const struct model_thread *thread) {
    return thread->allocations != 0 || thread->frees != 0 || thread->live_bytes != 0;
}

static void finish_threads(struct threads *threads) {
    struct model *model = threads->model;
    size_t kept = 0;
    for (size_t i = 0; i < model->thread_count; i++) {
        struct model_thread *thread = &model->threads[i];
        finish_thread(thread, &threads->counts[thread->id]);
        if (is_used(thread)) {
            model->threads[kept++] = *thread;
        }
    }
    model->thread_count = kept;
}

/* Fills the model's threads, foreign frees and timeline. */
static void threads_finish(struct threads *threads) {
    finish_threads(threads);
    finish_timeline(threads);
    foreign_sort(&threads->foreign);
    for (size_t i = 0; i < threads->foreign.count; i++) {
        struct model_foreign foreign = threads->foreign.pairs[i];
        foreign.blocks = slice_whole_count(foreign.blocks);
        records_take_foreign(threads->model, foreign);
    }
}

/* ---- A model ---- */

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

struct choosing {
    const struct selection *selection;
    const struct model *from;
    const uint32_t *places;
};

/* The contexts of `from` that were selected. What threads did of it, and when, it does not tell. */
static void choose_in_job(struct model *model, void *what) {
    const struct choosing *choosing = what;
    const struct model *from = choosing->from;
    submodel_start(model, from);
    model->contexts = job_array(from->context_count + 1, sizeof *model->contexts);
    for (size_t i = 0; i < from->context_count; i++) {
        if (choosing->places[from->contexts[i].id] != 0) {
            model->contexts[model->context_count++] = from->contexts[i];
        }
    }
    model->lifetimes = job_copy(from->lifetimes, from->lifetime_count,
                                MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
    model->lifetime_count = from->lifetime_count;
    if (selection_is_all(choosing->selection)) { /* everything */
        memcpy(model->threads, from->threads, from->thread_count * sizeof *model->threads);
        model->foreign = job_copy(from->foreign, from->foreign_count, sizeof *model->foreign);
        model->foreign_count = from->foreign_count;
        model->totals = from->totals;
        model->recording = from->recording;
        return;
    }
    model->thread_count = 0;
    model->timeline_count = 0;
    model->totals.maximum_ns = from->totals.maximum_ns;
    finish(model);
}

/* ---- Filters of blocks ---- */

struct adding {
    struct sums sums;
    struct threads *threads;
    const struct selection *selection;
    struct timeorder_parts parts;
    const struct replay_options *options;
};

static int begin_any(void *context, const struct life *life) {
    struct adding *adding = context;
    sums_begin_any(&adding->sums, life);
    return 0;
}

static int end_any(void *context, const struct life *life) {
    struct adding *adding = context;
    sums_end_any(&adding->sums, life);
    return 0;
}

static int take(void *context, const struct life *life) {
    struct adding *adding = context;
    struct sums_seen seen = sums_see(adding->sums.view, life);
    sums_take(&adding->sums, life);
    threads_take(adding->threads, life, seen);
    return 0;
}

static void add_up_in_job(struct model *model, void *what) {
    struct adding *adding = what;
    struct sums *sums = &adding->sums;
    const struct selection *selection = adding->selection;
    const struct selectionpass_visitor visitor = {
        .begin = begin_any, .end = end_any, .take = take, .context = adding};
    struct error error;
    error_set(&error, "out of memory while selecting");
    sums->model = model;
    submodel_start(model, sums->whole);
    model->recording.is_counted = false; /* of single blocks the events alone tell */
    timepoints_complete(model, selection->view.from_ns, selection->view.to_ns, 0);
    submodel_narrow(model, selection->view.from_ns, selection->view.to_ns);
    adding->threads = threads_new(model);
    sums_start(sums);
    job_check(selectionpass_run(selection, sums->whole, adding->parts, sums->places, &visitor,
                                adding->options, &error),
              &error);
    sums_finish(sums);
    threads_finish(adding->threads);
    threads_free(adding->threads);
    job_release(sums->cells);
    model->totals.maximum_ns = sums->peak.maximum_ns;
    finish(model);
    timepoints_put_maximum(model);
}

static struct model *sum_of_lives(const struct selection *selection, const struct model *whole,
                                  struct timeorder_parts parts, const uint32_t *places,
                                  const struct replay_options *options, struct error *error) {
    struct adding adding = {.sums = {.view = selection->view, .whole = whole, .places = places},
                            .selection = selection,
                            .parts = parts,
                            .options = options};
    return model_make(add_up_in_job, &adding, error);
}

struct taking_threads {
    struct model *model;
    const struct model *from;
};

/* Gives the model the threads, foreign frees and timeline of another one. */
static void take_threads(void *what) {
    const struct taking_threads *taking = what;
    struct model *model = taking->model;
    const struct model *from = taking->from;
    model->threads = job_copy(from->threads, from->thread_count, sizeof *model->threads);
    model->thread_count = from->thread_count;
    model->foreign = job_copy(from->foreign, from->foreign_count, sizeof *model->foreign);
    model->foreign_count = from->foreign_count;
    model->timeline = job_copy(from->timeline, from->timeline_count, sizeof *model->timeline);
    model->timeline_count = from->timeline_count;
}

/* ---- Which of them ---- */

static struct model *choose(const struct selection *selection, const struct model *from,
                            const uint32_t *places, struct error *error) {
    struct choosing choosing = {selection, from, places};
    return model_make(choose_in_job, &choosing, error);
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
    if (of_lives == NULL || job_run(take_threads, &(struct taking_threads){model, of_lives},
                                    &model->memory, error) != 0) {
        model_free(model);
        model = NULL;
    }
    model_free(of_lives);
    return model;
}

static struct model *answer(const struct selection *selection, const struct model *whole,
                            struct timeorder_parts parts, const uint32_t *places,
                            const struct replay_options *options, struct error *error) {
    /* Of a sample, errors of sums come from the single blocks. */
    bool is_sampled =
        model_is_estimate(whole) && parts.count != 0 && selection_asks_contexts(selection);
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
    places = selection_contexts(selection, whole, names);
    if (places == NULL) {
        error_set(error, "out of memory while selecting");
        return NULL;
    }
    model = answer(selection, whole, parts, places, options, error);
    free(places);
    return model;
}

/* ---- Pools or mappings as if they were the heap ---- */

/* heap->contexts may be those of the model. */
static void take_as_heap(struct model *heap, const struct model *model, uint32_t classes) {
    size_t count = model->context_count;
    heap->context_count = 0;
    heap->totals = (struct model_totals){.maximum_error_bytes = model->totals.maximum_error_bytes,
                                         .lost = model->totals.lost};
    for (size_t i = 0; i < count; i++) {
        struct model_context *context = &heap->contexts[heap->context_count];
        if ((classes & 1u << model->contexts[i].class) != 0) {
            *context = model->contexts[i];
            context->class = MODEL_HEAP;
            model_add_context(&heap->totals, context);
            heap->context_count++;
        }
    }
}

struct model *selection_as_heap(const struct model *model, uint32_t classes) {
    struct model *heap = job_alloc(sizeof *heap);
    *heap = *model;
    heap->contexts = job_array(model->context_count, sizeof *heap->contexts);
    take_as_heap(heap, model, classes);
    return heap;
}

void selection_turn_to_heap(const struct selection *selection, struct model *model) {
    uint32_t classes = selection_classes(selection);
    if (classes != 0 && classes != 1u << MODEL_HEAP) {
        take_as_heap(model, model, classes);
    }
}
