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
#include "analyze/window/sums.h"
#include "analyze/window/view.h"

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

struct livesums_cell {
    struct sum sum; /* counts in units of 1 / ACCOUNTS_ONE; without peak_bytes */
    uint64_t live_bytes;
    uint64_t base_units; /* held when the view begins */
    uint64_t adjust;     /* wraps: it may be less than 0 */
    uint32_t epoch;      /* of adjust */
    double total_variance;
    double live_variance;
};

/* By how much more is held and was allocated at a point of the timeline than at the one before. */
struct livesums_step {
    uint64_t live_bytes; /* wraps: it may fall */
    uint64_t alloc_units, alloc_bytes;
};

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

struct livesums {
    struct selection_times view;
    const struct model *whole;
    struct model *model;         /* to be filled */
    const uint32_t *places;      /* of selection_contexts() */
    struct livesums_cell *cells; /* whole->context_count */
    struct livesums_peak {
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
    /* Who allocated and freed them, and what they held over time. Only blocks of the heap count. */
    struct sums_thread *threads; /* by id */
    struct foreign foreign;      /* blocks in units */
    struct livesums_step *steps; /* model->timeline_count + 1: the last one is behind all points */
};

static bool livesums_is_in(struct selection_times view, uint64_t time_ns) {
    return view.from_ns <= time_ns && time_ns < view.to_ns;
}

static bool livesums_is_heap(const struct livesums *sums, const struct life *life) {
    return contexts_class(sums->whole->nodes[life->context].frame) == MODEL_HEAP;
}

/* Every block of the recording, in order: its birth, its end. */
static int livesums_begin_any(void *context, const struct life *life) {
    struct livesums *sums = context;
    struct livesums_peak *peak = &sums->peak;
    if (!livesums_is_in(sums->view, life->birth_ns) || !livesums_is_heap(sums, life)) {
        return 0;
    }
    peak->held += life_bytes(life);
    if ((int64_t)(peak->held - peak->maximum) > 0) {
        peak->maximum = peak->held;
        peak->maximum_ns = life->birth_ns;
        peak->at_maximum = true;
    }
    return 0;
}

static int livesums_end_any(void *context, const struct life *life) {
    struct livesums *sums = context;
    struct livesums_peak *peak = &sums->peak;
    uint64_t bytes = life_bytes(life);
    if (!livesums_is_in(sums->view, life->death_ns) || bytes == 0 ||
        !livesums_is_heap(sums, life)) {
        return 0;
    }
    peak->held -= bytes;
    if (peak->at_maximum) {
        peak->at_maximum = false;
        peak->place = life->death_order - 1;
        peak->epoch++;
    }
    return 0;
}

/* ---- One that was selected ---- */

/* How a view sees a life that is not wholly outside of it. */
struct livesums_seen {
    bool born; /* in the view, not before */
    bool died; /* in it, not behind */
    bool is_heap;
};

static double livesums_variance(const struct life *life) {
    return accounts_variance_of(life->size, life->weight);
}

static void livesums_note_peak(struct livesums *sums, struct livesums_cell *cell,
                               const struct life *life, struct livesums_seen seen) {
    const struct livesums_peak *peak = &sums->peak;
    bool held = (!seen.born || life->birth_order <= peak->place) &&
                (!seen.died || life->death_order > peak->place);
    if (peak->at_maximum || held != seen.died) {
        return;
    }
    if (cell->epoch != peak->epoch) {
        cell->epoch = peak->epoch;
        cell->adjust = 0;
    }
    cell->adjust += held ? life_bytes(life) : -life_bytes(life);
    if (sums->adjust_epoch != peak->epoch) {
        sums->adjust_epoch = peak->epoch;
        sums->adjust_variance = 0;
    }
    if (seen.is_heap) {
        sums->adjust_variance += held ? livesums_variance(life) : -livesums_variance(life);
    }
}

static void livesums_take_context(struct livesums *sums, const struct life *life,
                                  struct livesums_seen seen) {
    struct livesums_cell *cell = &sums->cells[sums->places[life->context] - 1];
    double size = life->size != 0 ? (double)life->size : 1;
    if (!seen.born) {
        cell->base_units += life_units(life);
    } else {
        cell->sum.alloc_bytes += life_bytes(life);
        cell->sum.alloc_count += life_units(life);
        if (life->weight != 0 && seen.is_heap) {
            cell->total_variance += livesums_variance(life);
            sums->allocation_variance += livesums_variance(life) / (size * size);
        }
    }
    if (!seen.died) {
        cell->live_bytes += life_bytes(life);
        cell->live_variance += seen.is_heap ? livesums_variance(life) : 0;
    }
    livesums_note_peak(sums, cell, life, seen);
    if (seen.died) {
        uint32_t ticks = (uint32_t)((life->death_ns >> MEMTRACE_TICK_SHIFT) -
                                    (life->birth_ns >> MEMTRACE_TICK_SHIFT));
        uint64_t *buckets = contexts_buckets(sums->model, &cell->sum);
        cell->sum.free_bytes += life_bytes(life);
        cell->sum.free_count += life_units(life);
        cell->sum.temporary += life->is_temporary && seen.is_heap ? life_units(life) : 0;
        buckets[contexts_bucket(ticks)] += life_units(life);
    }
}

static void livesums_take_steps(struct livesums *sums, const struct life *life,
                                struct livesums_seen seen) {
    struct livesums_step *birth =
        &sums->steps[seen.born ? timepoints_place(sums->model, life->birth_ns) : 0];
    birth->live_bytes += life_bytes(life);
    birth->alloc_bytes += seen.born ? life_bytes(life) : 0;
    birth->alloc_units += seen.born ? life_units(life) : 0;
    if (seen.died) {
        sums->steps[timepoints_place(sums->model, life->death_ns)].live_bytes -= life_bytes(life);
    }
}

static void livesums_take_threads(struct livesums *sums, const struct life *life,
                                  struct livesums_seen seen) {
    if (!life->is_inherited && life->block.thread < THREADS) {
        struct sums_thread *owner = &sums->threads[life->block.thread];
        owner->alloc_units += seen.born ? life_units(life) : 0;
        owner->alloc_bytes += seen.born ? life_bytes(life) : 0;
        owner->held_bytes += seen.died ? 0 : life_bytes(life);
    }
    if (seen.died && life->death_thread < THREADS) {
        struct sums_thread *freer = &sums->threads[life->death_thread];
        freer->free_units += life_units(life);
        freer->free_bytes += life_bytes(life);
        if (life->death_thread != life->block.thread) {
            freer->foreign_units += life_units(life);
            freer->foreign_bytes += life_bytes(life);
            foreign_add(&sums->foreign, (struct model_foreign){.freer = life->death_thread,
                                                               .owner = life->block.thread,
                                                               .blocks = life_units(life),
                                                               .bytes = life_bytes(life)});
        }
    }
}

/* At its end or later. */
static int livesums_take(void *context, const struct life *life) {
    struct livesums *sums = context;
    const struct livesums_seen seen = {.born = life->birth_ns >= sums->view.from_ns,
                                       .died = life->death_ns < sums->view.to_ns,
                                       .is_heap = livesums_is_heap(sums, life)};
    if (life->birth_ns < sums->view.to_ns && life->death_ns >= sums->view.from_ns) {
        livesums_take_context(sums, life, seen);
        if (seen.is_heap) {
            livesums_take_steps(sums, life, seen);
            livesums_take_threads(sums, life, seen);
        }
    }
    return 0;
}

/* ---- All of them ---- */

static struct model_context livesums_context(const struct livesums *sums,
                                             const struct model_context *like,
                                             const struct livesums_cell *cell) {
    const struct livesums_peak *peak = &sums->peak;
    bool is_adjusted = !peak->at_maximum && cell->epoch == peak->epoch;
    uint64_t allocations = slice_whole_count(cell->sum.alloc_count);
    uint64_t came = slice_whole_count(cell->base_units) + allocations;
    uint64_t gone = slice_whole_count(cell->sum.free_count);
    return (struct model_context){
        .id = like->id,
        .parent = like->parent,
        .frame = like->frame,
        .path = like->path,
        .pool = like->pool,
        .class = like->class,
        .live_bytes = cell->live_bytes,
        /* What came and did not go, also where estimates were rounded. */
        .live_blocks = came > gone ? came - gone : 0,
        .peak_bytes = cell->live_bytes + (is_adjusted ? cell->adjust : 0),
        .total_bytes = cell->sum.alloc_bytes,
        .allocations = allocations,
        .freed_bytes = cell->sum.free_bytes,
        .frees = gone,
        .temporary = slice_whole_count(cell->sum.temporary),
        .lifetimes = cell->sum.lifetimes != 0
                         ? (uint64_t)(cell->sum.lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS
                         : MODEL_NO_LIFETIMES,
        .total_error_bytes = sums_root(cell->total_variance),
        .live_error_bytes = sums_root(cell->live_variance),
    };
}

/* Fills the model's contexts, lifetimes and errors. */
static void livesums_finish_contexts(struct livesums *sums) {
    const struct livesums_peak *peak = &sums->peak;
    struct model *model = sums->model;
    bool is_adjusted = !peak->at_maximum && sums->adjust_epoch == peak->epoch;
    double total = 0;
    double live = 0;
    model->contexts = job_array(sums->whole->context_count + 1, sizeof *model->contexts);
    for (size_t i = 0; i < sums->whole->context_count; i++) {
        const struct livesums_cell *cell = &sums->cells[i];
        if ((cell->sum.alloc_count | cell->sum.free_count | cell->base_units) != 0) {
            model->contexts[model->context_count++] =
                livesums_context(sums, &sums->whole->contexts[i], cell);
        }
        total += cell->total_variance;
        live += cell->live_variance;
    }
    for (size_t i = 0; i < model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS; i++) {
        model->lifetimes[i] = slice_whole_count(model->lifetimes[i]);
    }
    model->recording.errors = (struct model_errors){
        .total_bytes = sums_root(total),
        .allocations = sums_root(sums->allocation_variance),
        .live_bytes = sums_root(live),
        .maximum_bytes = sums_root(live + (is_adjusted ? sums->adjust_variance : 0)),
    };
}

/* Fills the model's threads (those that did something), foreign frees and timeline. */
static void livesums_finish_threads(struct livesums *sums) {
    struct model *model = sums->model;
    struct livesums_step sum = {0};
    size_t kept = 0;
    for (size_t i = 0; i < model->thread_count; i++) {
        struct model_thread *thread = &model->threads[i];
        sums_fill_thread(thread, &sums->threads[thread->id]);
        if (thread->allocations != 0 || thread->frees != 0 || thread->live_bytes != 0) {
            model->threads[kept++] = *thread;
        }
    }
    model->thread_count = kept;
    for (size_t i = 0; i < model->timeline_count; i++) {
        struct memtrace_point *point = &model->timeline[i];
        sum.live_bytes += sums->steps[i].live_bytes;
        sum.alloc_bytes += sums->steps[i].alloc_bytes;
        sum.alloc_units += sums->steps[i].alloc_units;
        point->live_bytes = sum.live_bytes;
        point->alloc_bytes = sum.alloc_bytes;
        point->alloc_count = slice_whole_count(sum.alloc_units);
    }
    sums_fill_foreign(model, &sums->foreign);
}

/* ---- A model ---- */

struct making {
    const struct selection *selection;
    const struct model *whole;
    struct timeorder_parts parts;
    const uint32_t *places; /* of selection_contexts() */
    const struct replay_options *options;
    struct error *error;
    const struct model *from;  /* contexts are chosen of it, or threads taken */
    struct model *has_threads; /* ... by this one */
};

/* Totals are the sums over what was selected; how far a part's maximum may be from the true one
 * nobody knows. */
static void making_finish(struct model *model) {
    model_total_contexts(model);
    if (model->recording.sampled && !model->recording.present) {
        model_total_errors(model);
    }
    model->header.live_bytes = (int64_t)model->totals.live_bytes;
    model->header.maximum_bytes = (int64_t)model->totals.maximum_bytes;
    model->header.peak_error_bytes = 0;
}

/* Filters of contexts: those of `from` that were selected. What threads did of it, and when, it
 * does not tell. */
static void making_choose(struct model *model, void *what) {
    const struct making *making = what;
    const struct model *from = making->from;
    submodel_start(model, from);
    model->contexts = job_array(from->context_count + 1, sizeof *model->contexts);
    for (size_t i = 0; i < from->context_count; i++) {
        if (making->places[from->contexts[i].id] != 0) {
            model->contexts[model->context_count++] = from->contexts[i];
        }
    }
    model->lifetimes = job_copy(from->lifetimes, from->lifetime_count,
                                MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
    model->lifetime_count = from->lifetime_count;
    if (selection_is_all(making->selection)) { /* everything */
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
    making_finish(model);
}

/* Filters of blocks: what a pass over them adds up to. */
static void making_add_up(struct model *model, void *what) {
    const struct making *making = what;
    const struct selection_times view = making->selection->view;
    struct livesums sums = {.view = view,
                            .whole = making->whole,
                            .model = model,
                            .places = making->places,
                            .cells =
                                job_array(making->whole->context_count + 1, sizeof *sums.cells),
                            .peak = {.maximum_ns = view.from_ns, .at_maximum = true},
                            .threads = job_array(THREADS, sizeof *sums.threads)};
    const struct selectionpass_visitor visitor = {.begin = livesums_begin_any,
                                                  .end = livesums_end_any,
                                                  .take = livesums_take,
                                                  .context = &sums};
    struct error error;
    error_set(&error, "out of memory while selecting");
    submodel_start(model, making->whole);
    model->recording.is_counted = false; /* of single blocks the events alone tell */
    timepoints_complete(model, view.from_ns, view.to_ns, 0);
    submodel_narrow(model, view.from_ns, view.to_ns);
    sums.steps = job_array(model->timeline_count + 1, sizeof *sums.steps);
    job_check(selectionpass_run(making->selection, making->whole, making->parts, making->places,
                                &visitor, making->options, &error),
              &error);
    livesums_finish_contexts(&sums);
    livesums_finish_threads(&sums);
    foreign_free(&sums.foreign);
    job_release(sums.threads);
    job_release(sums.steps);
    job_release(sums.cells);
    model->totals.maximum_ns = sums.peak.maximum_ns;
    making_finish(model);
    timepoints_put_maximum(model);
}

/* Gives the model the threads, foreign frees and timeline of another one. */
static void making_take_threads(void *what) {
    const struct making *making = what;
    struct model *model = making->has_threads;
    const struct model *from = making->from;
    model->threads = job_copy(from->threads, from->thread_count, sizeof *model->threads);
    model->thread_count = from->thread_count;
    model->foreign = job_copy(from->foreign, from->foreign_count, sizeof *model->foreign);
    model->foreign_count = from->foreign_count;
    model->timeline = job_copy(from->timeline, from->timeline_count, sizeof *model->timeline);
    model->timeline_count = from->timeline_count;
}

/* Of sums that are there: of the whole, or of a view that the recording's index tells. */
static struct model *making_of_contexts(struct making *making) {
    const struct selection *selection = making->selection;
    bool asks = selection_asks_contexts(selection);
    struct model *view = NULL;
    struct model *model;
    struct model *of_lives;
    if (selection_has_view(selection)) {
        view = model_view(making->whole, making->parts, selection->view.from_ns,
                          selection->view.to_ns, making->options, making->error);
        if (view == NULL || !asks) {
            return view;
        }
    }
    making->from = view != NULL ? view : making->whole;
    model = model_make(making_choose, making, making->error);
    model_free(view);
    if (model == NULL || !selection->wants_threads || making->parts.count == 0 || !asks) {
        return model;
    }
    making->from = of_lives = model_make(making_add_up, making, making->error);
    making->has_threads = model;
    if (of_lives == NULL ||
        job_run(making_take_threads, making, &model->memory, making->error) != 0) {
        model_free(model);
        model = NULL;
    }
    model_free(of_lives);
    return model;
}

struct model *selection_model(const struct selection *selection, const struct model *whole,
                              struct timeorder_parts parts, const struct names *names,
                              const struct replay_options *options, struct error *error) {
    struct making making = {
        .selection = selection, .whole = whole, .parts = parts, .options = options, .error = error};
    bool needs_lives = selection_needs_lives(selection);
    uint32_t *places;
    struct model *model;
    if ((needs_lives || selection_has_view(selection)) && parts.count == 0) {
        error_set(error, "a profile has neither single blocks nor their times; make a "
                         "recording with `memtrace record`");
        return NULL;
    }
    /* Of a sample, errors of sums come from the single blocks. */
    needs_lives |=
        model_is_estimate(whole) && parts.count != 0 && selection_asks_contexts(selection);
    making.places = places = selection_contexts(selection, whole, names);
    model = needs_lives ? model_make(making_add_up, &making, error) : making_of_contexts(&making);
    job_release(places);
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
