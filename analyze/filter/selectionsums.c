/* SPDX-License-Identifier: MIT */
/* selectionsums.c: see selectionsums.h. */
#include "analyze/filter/selectionsums.h"

#include "analyze/replay/accounts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int selectionsums_start(struct selectionsums *sums) {
    sums->peak = (struct selectionsums_peak){.maximum_ns = sums->view.from_ns, .at_maximum = true};
    sums->cells = calloc(sums->whole->context_count + 1, sizeof *sums->cells);
    return sums->cells != NULL ? 0 : -1;
}

void selectionsums_end(struct selectionsums *sums) {
    free(sums->cells);
    sums->cells = NULL;
}

static bool is_in(struct selection_times view, uint64_t time_ns) {
    return view.from_ns <= time_ns && time_ns < view.to_ns;
}

struct selectionsums_seen selectionsums_see(struct selection_times view, const struct life *life) {
    return (struct selectionsums_seen){
        .at_all = life->birth_ns < view.to_ns && life->death_ns >= view.from_ns,
        .born = life->birth_ns >= view.from_ns,
        .died = life->death_ns < view.to_ns,
    };
}

/* ---- The moment of the maximum ---- */

static bool is_heap(const struct selectionsums *sums, const struct life *life) {
    return contexts_class(sums->whole->nodes[life->context].frame) == MODEL_HEAP;
}

void selectionsums_begin_any(struct selectionsums *sums, const struct life *life) {
    struct selectionsums_peak *peak = &sums->peak;
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

void selectionsums_end_any(struct selectionsums *sums, const struct life *life) {
    struct selectionsums_peak *peak = &sums->peak;
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

/* ---- One life ---- */

/* As in accounts.c: a sampled block of size s with weight w adds w (w - s) to a sum's variance. */
static double variance_of(const struct life *life) {
    double weight = (double)life->weight;
    return life->weight > life->size ? weight * (weight - (double)life->size) : 0;
}

static void adjust(struct selectionsums *sums, struct selectionsums_cell *cell,
                   const struct life *life, bool is_heap, int sign) {
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

static void note_peak(struct selectionsums *sums, struct selectionsums_cell *cell,
                      const struct life *life, struct selectionsums_seen seen) {
    const struct selectionsums_peak *peak = &sums->peak;
    bool held = (!seen.born || life->birth_order <= peak->place) &&
                (!seen.died || life->death_order > peak->place);
    if (!peak->at_maximum && held == seen.died) {
        adjust(sums, cell, life, is_heap(sums, life), seen.died ? 1 : -1);
    }
}

static void take_birth(struct selectionsums *sums, struct selectionsums_cell *cell,
                       const struct life *life) {
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

static int take_death(struct selectionsums *sums, struct selectionsums_cell *cell,
                      const struct life *life) {
    uint64_t *buckets = cell->sum.lifetimes != 0 ? contexts_buckets_of(sums->model, &cell->sum)
                                                 : contexts_buckets(sums->model, &cell->sum);
    if (buckets == NULL) {
        return -1;
    }
    cell->sum.free_bytes += life_bytes(life);
    cell->sum.free_count += life_units(life);
    cell->sum.temporary += life->is_temporary && is_heap(sums, life) ? life_units(life) : 0;
    buckets[contexts_bucket(ticks_of(life))] += life_units(life);
    return 0;
}

int selectionsums_take(struct selectionsums *sums, const struct life *life) {
    struct selectionsums_seen seen = selectionsums_see(sums->view, life);
    struct selectionsums_cell *cell = &sums->cells[sums->places[life->context] - 1];
    if (!seen.at_all) {
        return 0;
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
    return seen.died ? take_death(sums, cell, life) : 0;
}

/* ---- The end ---- */

static uint64_t whole_of(uint64_t units) {
    return (units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE;
}

static double root(double variance) {
    return variance > 0 ? sqrt(variance) : 0;
}

/* So that they are what came and did not go, also where estimates were rounded. */
static uint64_t live_blocks(const struct selectionsums_cell *cell) {
    uint64_t came = whole_of(cell->base_units) + whole_of(cell->sum.alloc_count);
    uint64_t gone = whole_of(cell->sum.free_count);
    return came > gone ? came - gone : 0;
}

static struct model_context context_from(const struct selectionsums *sums,
                                         const struct model_context *like,
                                         const struct selectionsums_cell *cell) {
    const struct selectionsums_peak *peak = &sums->peak;
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
        .allocations = whole_of(cell->sum.alloc_count),
        .freed_bytes = cell->sum.free_bytes,
        .frees = whole_of(cell->sum.free_count),
        .temporary = whole_of(cell->sum.temporary),
        .lifetimes = cell->sum.lifetimes != 0
                         ? (uint64_t)(cell->sum.lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS
                         : MODEL_NO_LIFETIMES,
        .total_error_bytes = root(cell->total_variance),
        .live_error_bytes = root(cell->live_variance),
    };
}

static void set_errors(const struct selectionsums *sums) {
    const struct selectionsums_peak *peak = &sums->peak;
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

int selectionsums_finish(struct selectionsums *sums) {
    struct model *model = sums->model;
    model->contexts = calloc(sums->whole->context_count + 1, sizeof *model->contexts);
    if (model->contexts == NULL) {
        return -1;
    }
    for (size_t i = 0; i < sums->whole->context_count; i++) {
        const struct selectionsums_cell *cell = &sums->cells[i];
        if ((cell->sum.alloc_count | cell->sum.free_count | cell->base_units) != 0) {
            model->contexts[model->context_count++] =
                context_from(sums, &sums->whole->contexts[i], cell);
        }
    }
    for (size_t i = 0; i < model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS; i++) {
        model->lifetimes[i] = whole_of(model->lifetimes[i]);
    }
    set_errors(sums);
    return 0;
}
