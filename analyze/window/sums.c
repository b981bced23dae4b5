/* SPDX-License-Identifier: MIT */
/* sums.c: adds up slices. See sums.h. */
#include "analyze/window/sums.h"

#include "analyze/replay/accounts.h"

#include <math.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

void sums_start(struct sums *sums, struct model *model) {
    *sums = (struct sums){.model = model,
                          .cells = job_array(model->node_count, sizeof *sums->cells),
                          .threads = job_array(THREADS, sizeof *sums->threads),
                          .epoch = 1,
                          .all = {.at_maximum = true}};
}

void sums_end(struct sums *sums) {
    job_release(sums->cells);
    job_release(sums->threads);
    foreign_free(&sums->foreign);
    *sums = (struct sums){0};
}

/* ---- Contexts ---- */

/* What the context held when the maximum was left, or, in the slice with the maximum, there. */
static void sums_keep_peak(const struct sums *sums, struct sum *sum,
                           const struct slice_context *change, bool is_highest) {
    uint64_t before = sum->alloc_bytes - sum->free_bytes;
    if (is_highest) {
        sum->peak_bytes = before + change->peak;
    } else if (sum->epoch != sums->epoch) {
        sum->peak_bytes = before;
    }
    sum->epoch = sums->epoch;
}

static void sums_add_context(struct sums *sums, const struct slice_context *change,
                             bool is_highest) {
    struct sum *sum = &sums->cells[change->id];
    sums_keep_peak(sums, sum, change, is_highest);
    sum->alloc_bytes += change->alloc_bytes;
    sum->alloc_count += change->alloc_units;
    sum->free_bytes += change->free_bytes;
    sum->free_count += change->free_units;
    sum->temporary += change->temporary;
    sum->total_variance += change->total_variance;
    sum->live_variance += change->live_variance;
    if (change->free_units != 0) {
        uint64_t *buckets = contexts_buckets(sums->model, sum);
        for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            buckets[i] += change->lifetimes[i];
        }
    }
}

/* What was held when the view began was too much by this. */
static void sums_take_base(struct sums *sums, const struct slice_context *change) {
    struct sum *sum = &sums->cells[change->id];
    sum->base_bytes -= change->alloc_bytes - change->free_bytes;
    sum->base_count -= change->alloc_units - change->free_units;
}

static void sums_add_base(struct sums *sums, const struct slice_context *change) {
    struct sum *sum = &sums->cells[change->id];
    sum->base_bytes += change->alloc_bytes - change->free_bytes;
    sum->base_count += change->alloc_units - change->free_units;
    sum->live_variance += change->live_variance;
}

/* ---- Threads ---- */

/* What a slice is to the view. What is moved from before it to its inside is held in any case. */
enum part { PART_BEFORE, PART_INSIDE, PART_MOVED };

static void sums_add_threads(struct sums *sums, struct slice_reader *reader, enum part part) {
    struct slice_thread change;
    while (slice_next_thread(reader, &change)) {
        struct sums_thread *thread = &sums->threads[change.id];
        thread->held_bytes += part != PART_MOVED ? change.alloc_bytes - change.free_bytes : 0;
        if (part != PART_BEFORE) {
            thread->alloc_units += change.alloc_units;
            thread->alloc_bytes += change.alloc_bytes;
            thread->free_units += change.free_units;
            thread->free_bytes += change.free_bytes;
        }
        for (uint64_t i = 0; i < change.foreign; i++) {
            struct slice_foreign foreign;
            slice_next_foreign(reader, &foreign);
            thread->held_bytes += part != PART_MOVED ? foreign.bytes : 0;
            sums->threads[foreign.owner % THREADS].held_bytes -=
                part != PART_MOVED ? foreign.bytes : 0;
            if (part != PART_BEFORE) {
                thread->foreign_units += foreign.units;
                thread->foreign_bytes += foreign.bytes;
                foreign_add(&sums->foreign, (struct model_foreign){.freer = change.id,
                                                                   .owner = foreign.owner,
                                                                   .blocks = foreign.units,
                                                                   .bytes = foreign.bytes});
            }
        }
    }
}

/* ---- Slices ---- */

void sums_add_before(struct sums *sums, const struct slice *slice) {
    struct slice_reader reader;
    struct slice_context change;
    slice_read(&reader, slice);
    while (slice_next_context(&reader, &change)) {
        if (change.id < sums->model->node_count) {
            sums_add_base(sums, &change);
        }
    }
    sums->base = wrap_add(sums->base, slice->change);
    sums->base_variance += slice->variance.live;
    sums_add_threads(sums, &reader, PART_BEFORE);
}

static void sums_add_slice(struct sums *sums, const struct slice *slice, enum part part) {
    bool is_highest = slice_add_totals(&sums->all, slice);
    struct slice_reader reader;
    struct slice_context change;
    sums->epoch += is_highest; /* others held there what they hold now */
    slice_read(&reader, slice);
    while (slice_next_context(&reader, &change)) {
        if (change.id < sums->model->node_count) {
            sums_add_context(sums, &change, is_highest);
            if (part == PART_MOVED) {
                sums_take_base(sums, &change);
            }
        }
    }
    sums_add_threads(sums, &reader, part);
}

void sums_add(struct sums *sums, const struct slice *slice) {
    sums_add_slice(sums, slice, PART_INSIDE);
}

void sums_move(struct sums *sums, const struct slice *slice) {
    sums->base = wrap_subtract(sums->base, slice->change);
    sums_add_slice(sums, slice, PART_MOVED);
}

/* ---- One slice ---- */

static uint64_t sums_peak_of(const struct sums *sums, const struct sum *sum) {
    return sum->epoch == sums->epoch ? sum->peak_bytes : sum->alloc_bytes - sum->free_bytes;
}

static void sums_pack_context(const struct sums *sums, struct slice_writer *writer, uint32_t id) {
    const struct sum *sum = &sums->cells[id];
    struct slice_context context = {.id = id,
                                    .alloc_bytes = sum->alloc_bytes,
                                    .alloc_units = sum->alloc_count,
                                    .free_bytes = sum->free_bytes,
                                    .free_units = sum->free_count,
                                    .temporary = sum->temporary,
                                    .peak = sums_peak_of(sums, sum),
                                    .total_variance = sum->total_variance,
                                    .live_variance = sum->live_variance};
    if (sum->lifetimes != 0) {
        memcpy(context.lifetimes, contexts_buckets_of(sums->model, sum), sizeof context.lifetimes);
    }
    slice_put_context(writer, &context);
}

void sums_pack(struct sums *sums, struct slice *slice) {
    struct slice_writer writer = {.slice = slice, .bytes.of_job = true};
    size_t foreign = 0;
    *slice = sums->all;
    for (uint32_t id = 1; id < sums->model->node_count; id++) {
        if (sums->cells[id].epoch != 0) {
            sums_pack_context(sums, &writer, id);
        }
    }
    foreign_sort(&sums->foreign);
    for (uint32_t id = 0; id < THREADS; id++) {
        const struct sums_thread *thread = &sums->threads[id];
        const struct slice_thread costs = {.id = id,
                                           .alloc_units = thread->alloc_units,
                                           .alloc_bytes = thread->alloc_bytes,
                                           .free_units = thread->free_units,
                                           .free_bytes = thread->free_bytes};
        slice_put_thread_of(&writer, costs, &sums->foreign, &foreign);
    }
    slice_finish(&writer);
}

/* ---- The model ---- */

double sums_root(double variance) {
    return variance > 0 ? sqrt(variance) : 0;
}

struct sums_thread sums_thread(const struct sums *sums, uint32_t id) {
    struct sums_thread thread = sums->threads[id];
    thread.alloc_units = slice_whole_count(thread.alloc_units);
    thread.free_units = slice_whole_count(thread.free_units);
    thread.foreign_units = slice_whole_count(thread.foreign_units);
    return thread;
}

void sums_fill_thread(struct model_thread *thread, const struct sums_thread *counts) {
    thread->allocations = slice_whole_count(counts->alloc_units);
    thread->total_bytes = counts->alloc_bytes;
    thread->frees = slice_whole_count(counts->free_units);
    thread->freed_bytes = counts->free_bytes;
    thread->foreign_frees = slice_whole_count(counts->foreign_units);
    thread->foreign_freed_bytes = counts->foreign_bytes;
    thread->live_bytes = (int64_t)counts->held_bytes;
}

void sums_fill_foreign(struct model *model, struct foreign *foreign) {
    foreign_give(foreign, model);
    for (size_t i = 0; i < model->foreign_count; i++) {
        model->foreign[i].blocks = slice_whole_count(model->foreign[i].blocks);
    }
}

static void sums_finish_cell(const struct sums *sums, struct sum *sum) {
    sum->peak_bytes = sum->base_bytes + sums_peak_of(sums, sum);
    sum->alloc_count = slice_whole_count(sum->alloc_count);
    sum->free_count = slice_whole_count(sum->free_count);
    sum->base_count = slice_whole_count(sum->base_count);
    sum->temporary = slice_whole_count(sum->temporary);
    sum->total_variance = sums_root(sum->total_variance);
    sum->live_variance = sums_root(sum->live_variance);
}

void sums_finish(struct sums *sums) {
    const struct slice_variance *variance = &sums->all.variance;
    struct model *model = sums->model;
    for (size_t i = 0; i < model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS; i++) {
        model->lifetimes[i] = slice_whole_count(model->lifetimes[i]);
    }
    for (size_t id = 1; id < model->node_count; id++) {
        struct sum *sum = &sums->cells[id];
        if ((sum->epoch | sum->base_count | sum->base_bytes) != 0) {
            sums_finish_cell(sums, sum);
        }
    }
    contexts_settle_before(model, sums->cells);
    model->recording.errors = (struct model_errors){
        .total_bytes = sums_root(variance->total),
        .allocations = sums_root(variance->allocations),
        .live_bytes = sums_root(sums->base_variance + variance->live),
        .maximum_bytes = sums_root(sums->base_variance + variance->maximum),
    };
    model->header.live_bytes = wrap_add(sums->base, sums->all.change);
    model->header.maximum_bytes = wrap_add(sums->base, sums->all.highest);
    contexts_make(model, sums->cells);
    sums_fill_foreign(model, &sums->foreign);
}
