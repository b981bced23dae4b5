/* SPDX-License-Identifier: MIT */
/*
 * load.c: a profile becomes a model: its header, costs of contexts, totals and times. records.c has
 * threads, modules, pools and the timeline, children.c forked children. See load.h.
 */
#include "analyze/profile/load.h"

#include "analyze/profile/timepoints.h"
#include "memtrace/sampled.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Totals ---- */

void model_damage(struct model *model, const char *format, ...) {
    if (model->damage[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(model->damage, sizeof model->damage, format, arguments);
        va_end(arguments);
    }
}

uint64_t model_add(uint64_t left, uint64_t right) {
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

void model_add_context(struct model_totals *totals, const struct model_context *context) {
    totals->maximum_bytes = model_add(totals->maximum_bytes, context->peak_bytes);
    totals->live_bytes = model_add(totals->live_bytes, context->live_bytes);
    if (context->frame == MEMTRACE_FRAME_BEFORE) { /* nobody saw these allocations */
        totals->before_bytes = model_add(totals->before_bytes, context->live_bytes);
        totals->before_freed_bytes = model_add(totals->before_freed_bytes, context->freed_bytes);
        totals->before_frees = model_add(totals->before_frees, context->frees);
        return;
    }
    totals->live_blocks = model_add(totals->live_blocks, context->live_blocks);
    totals->total_bytes = model_add(totals->total_bytes, context->total_bytes);
    totals->allocations = model_add(totals->allocations, context->allocations);
    totals->freed_bytes = model_add(totals->freed_bytes, context->freed_bytes);
    totals->frees = model_add(totals->frees, context->frees);
    totals->temporary = model_add(totals->temporary, context->temporary);
    totals->context_count += context->allocations != 0;
}

/* Without contexts the threads know the totals, and the header the maximum. */
static void total_threads(struct model *model) {
    struct model_totals *totals = &model->totals;
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        totals->total_bytes = model_add(totals->total_bytes, thread->total_bytes);
        totals->allocations = model_add(totals->allocations, thread->allocations);
        totals->freed_bytes = model_add(totals->freed_bytes, thread->freed_bytes);
        totals->frees = model_add(totals->frees, thread->frees);
    }
    if (totals->freed_bytes > totals->total_bytes) {
        totals->freed_bytes = totals->total_bytes;
    }
    if (totals->frees > totals->allocations) {
        totals->frees = totals->allocations;
    }
    totals->live_bytes = totals->total_bytes - totals->freed_bytes;
    totals->live_blocks = totals->allocations - totals->frees;
    if (model->header.maximum_bytes > 0) {
        totals->maximum_bytes = (uint64_t)model->header.maximum_bytes;
    }
    if (totals->maximum_bytes < totals->live_bytes) {
        totals->maximum_bytes = totals->live_bytes;
    }
}

bool model_total_contexts(struct model *model) {
    bool any = false;
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_HEAP) {
            model_add_context(&model->totals, &model->contexts[i]);
            any = true;
        }
    }
    return any;
}

void model_total_errors(struct model *model) {
    struct model_errors sums = {0};
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        sums.total_bytes += context->total_error_bytes * context->total_error_bytes;
        sums.live_bytes += context->live_error_bytes * context->live_error_bytes;
        sums.allocations += context->allocations_error * context->allocations_error;
    }
    /* Of the maximum it is told for all of the heap only; the same share of it for a part. */
    sums.maximum_bytes = model->header.maximum_variance;
    if (model->header.maximum_bytes > 0) {
        sums.maximum_bytes *=
            (double)model->totals.maximum_bytes / (double)model->header.maximum_bytes;
    }
    model->recording.errors = (struct model_errors){.total_bytes = sqrt(sums.total_bytes),
                                                    .live_bytes = sqrt(sums.live_bytes),
                                                    .allocations = sqrt(sums.allocations),
                                                    .maximum_bytes = sqrt(sums.maximum_bytes)};
}

static void note_sampling(struct model *model) {
    double variance = model->header.maximum_variance;
    model->header.maximum_variance = isfinite(variance) && variance > 0 ? variance : 0;
    model->recording.sampled = (model->header.flags & MEMTRACE_FLAG_SAMPLED) != 0;
    if (model->recording.sampled) {
        model->recording.sample_bytes = model->header.sample_bytes;
        model_total_errors(model);
    }
}

static void total(struct model *model) {
    if (!model_total_contexts(model)) {
        total_threads(model);
    }
    model->totals.maximum_error_bytes = model->header.peak_error_bytes;
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        bool is_here = kind != MEMTRACE_LOST_RECORDS || model->recording.present;
        uint64_t lost = is_here ? *memtrace_lost(&model->header, kind) : 0;
        model->totals.lost = model_add(model->totals.lost, lost);
    }
}

/* The latest time that anything in the file speaks of, since the start. */
static uint64_t latest_time(const struct model *model) {
    const struct memtrace_header *header = &model->header;
    uint64_t now = header->clock_ns;
    if (header->end_monotonic_ns > header->start_monotonic_ns) {
        now = header->end_monotonic_ns - header->start_monotonic_ns;
    }
    if (model->timeline_count != 0 && model->timeline[model->timeline_count - 1].time_ns > now) {
        now = model->timeline[model->timeline_count - 1].time_ns;
    }
    return now;
}

void model_finish(struct model *model) {
    model->to_ns = UINT64_MAX;
    total(model);
    model->now_ns = latest_time(model);
}

/* ---- Contexts of sums ---- */

uint64_t *contexts_buckets(struct model *model, struct sum *sum) {
    if (sum->lifetimes == 0) {
        job_grow(&model->lifetimes, &model->lifetime_room, model->lifetime_count,
                 MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
        memset(&model->lifetimes[model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS], 0,
               MEMTRACE_LIFETIME_BUCKETS * sizeof *model->lifetimes);
        sum->lifetimes = (uint32_t)++model->lifetime_count;
    }
    return contexts_buckets_of(model, sum);
}

enum model_class contexts_class(uint64_t frame) {
    if (frame == 0 || frame >= MEMTRACE_FRAME_CLASSES || frame == MEMTRACE_FRAME_UNKNOWN) {
        return MODEL_HEAP;
    }
    return frame >= MEMTRACE_FRAME_POOL ? MODEL_POOL : MODEL_MAPPING; /* or of a later writer */
}

static void classify_context(const struct model *model, struct model_context *context) {
    uint64_t frame = context->frame;
    context->class = contexts_class(frame);
    context->path = frame != 0 ? context->id : 0;
    if (frame != 0 && frame < MEMTRACE_FRAME_CLASSES) {
        context->path = model->nodes[context->id].parent;
        context->pool = context->class == MODEL_POOL ? (uint32_t)(frame - MEMTRACE_FRAME_POOL) : 0;
    }
}

static uint64_t at_most(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

/* Of all that happened, frees <= allocations holds in every whole profile; cells that the writer
 * was killed in the middle of, and damage, may break it. */
static struct model_context context_from(const struct model *model, uint32_t id,
                                         const struct sum *sum) {
    uint64_t bytes = sum->base_bytes + sum->alloc_bytes;
    uint64_t count = sum->base_count + sum->alloc_count;
    struct model_context context = {
        .id = id,
        .parent = model->nodes[id].parent,
        .frame = model->nodes[id].frame,
        .peak_bytes = sum->peak_bytes <= INT64_MAX ? sum->peak_bytes : 0,
        .total_bytes = sum->alloc_bytes,
        .allocations = sum->alloc_count,
        .freed_bytes = at_most(sum->free_bytes, bytes),
        .frees = at_most(sum->free_count, count),
        .temporary = sum->temporary,
        .lifetimes = sum->lifetimes != 0
                         ? (uint64_t)(sum->lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS
                         : MODEL_NO_LIFETIMES,
        .total_error_bytes = sum->total_variance,
        .live_error_bytes = sum->live_variance,
        .allocations_error = sum->count_variance,
    };
    context.live_bytes = bytes - context.freed_bytes;
    context.live_blocks = count - context.frees;
    classify_context(model, &context);
    return context;
}

static bool is_used(const struct sum *sum) {
    return (sum->alloc_count | sum->free_count | sum->alloc_bytes | sum->base_count |
            sum->base_bytes) != 0;
}

void contexts_settle_before(const struct model *model, struct sum *sums) {
    for (size_t id = 1; id < model->node_count; id++) {
        struct sum *sum = &sums[id];
        if (model->nodes[id].frame == MEMTRACE_FRAME_BEFORE) {
            sum->base_bytes += sum->alloc_bytes;
            sum->base_count = sum->free_count;
            sum->alloc_bytes = sum->alloc_count = sum->temporary = 0;
            sum->lifetimes = 0;
        }
    }
}

void contexts_make(struct model *model, const struct sum *sums) {
    size_t count = 0;
    for (size_t id = 1; id < model->node_count; id++) {
        count += is_used(&sums[id]);
    }
    model->contexts = job_array(count + 1, sizeof *model->contexts);
    for (size_t id = 1; id < model->node_count; id++) {
        const struct sum *sum = &sums[id];
        if (!is_used(sum)) {
            continue;
        }
        if (sum->free_count > sum->base_count + sum->alloc_count &&
            model->header.state == MEMTRACE_STATE_ENDED) {
            model_damage(model, "context %zu frees more than it allocated", id);
        }
        model->contexts[model->context_count++] = context_from(model, (uint32_t)id, sum);
    }
}

/* ---- Sums of the ledger's columns and the tree: nodes, contexts and their lifetimes.
 *
 * Order, for programs that run meanwhile: of each context the frees of all columns, then its
 * allocations and peak (cells_sum()); at last the nodes, from the youngest to the oldest. So a free
 * is never seen without its allocation, a cost never without its node, a node never without its
 * parent ---- */

struct work {
    const struct profile *profile;
    struct model *model;
    struct sum *sums; /* node_count */
};

/* Estimates come before the cells, so that what is freed meanwhile is not taken off twice. */

static double load_double(const double *field) {
    uint64_t bits = profile_load_u64((const uint64_t *)(const void *)field);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) && value > 0 ? value : 0;
}

static void load_estimate(struct sum *sum, const struct memtrace_estimate *estimate) {
    double freed = load_double(&estimate->freed_variance);
    double total = load_double(&estimate->total_variance);
    sum->total_variance = sqrt(total);
    sum->live_variance = sqrt(total > freed ? total - freed : 0);
    sum->count_variance = sqrt(load_double(&estimate->count_variance));
}

static void load_estimates(struct work *work) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_ESTIMATES};
    while (profile_next(work->profile, &at) != NULL) {
        uint32_t id;
        if (cells_node_id(at.segment, at.place, &id) && id < work->model->node_count) {
            load_estimate(&work->sums[id], at.item);
        }
    }
}

static int by_falling_index(const void *left, const void *right) {
    const struct profile_segment *a = *(const struct profile_segment *const *)left;
    const struct profile_segment *b = *(const struct profile_segment *const *)right;
    return (a->index < b->index) - (a->index > b->index);
}

static void load_nodes(struct work *work) {
    const struct profile *profile = work->profile;
    const struct profile_segment **trees = job_array(profile->segment_count + 1, sizeof *trees);
    size_t count = 0;
    for (size_t i = 0; i < profile->segment_count; i++) {
        if (profile_is_tree(&profile->segments[i])) {
            trees[count++] = &profile->segments[i];
        }
    }
    qsort(trees, count, sizeof *trees, by_falling_index);
    for (size_t i = 0; i < count; i++) {
        uint32_t impossible = 0;
        cells_load_nodes(profile, trees[i], work->model->nodes, work->model->node_count,
                         &impossible);
        if (impossible != 0) {
            model_damage(work->model, "context %u has an impossible parent", impossible);
        }
    }
    job_release(trees);
}

/* What follows of a context at once, so that what runs meanwhile changes little in between. */
static void load_cells(struct work *work) {
    enum { PEAK_TRIES = 3 };
    const struct memtrace_header *header = profile_header(work->profile);
    struct model *model = work->model;
    uint32_t epoch = profile_load_u32(&header->peak_epoch);
    uint32_t now;
    struct cells cells;
    cells_gather(&cells, work->profile);
    for (struct cells_context at = {0}; cells_next(&cells, model->node_count, &at);) {
        struct sum *sum = &work->sums[at.id];
        uint64_t found[MEMTRACE_LIFETIME_BUCKETS] = {0};
        cells_sum(&cells, &at, epoch, sum);
        if (cells_sum_lifetimes(&cells, &at, found)) {
            memcpy(contexts_buckets(model, sum), found, sizeof found);
        }
    }
    /* Peaks belong to one moment: again, if the process reached or left its maximum meanwhile. */
    for (int tries = 0;
         tries < PEAK_TRIES && (now = profile_load_u32(&header->peak_epoch)) != epoch; tries++) {
        epoch = now;
        for (size_t i = 0; i < model->node_count; i++) {
            work->sums[i].peak_bytes = 0;
        }
        for (struct cells_context at = {0}; cells_next(&cells, model->node_count, &at);) {
            cells_sum_peak(&cells, &at, epoch, &work->sums[at.id]);
        }
    }
    cells_release(&cells);
}

static void load_contexts(struct model *model, const struct profile *profile) {
    struct work work = {.profile = profile, .model = model};
    model->node_count = cells_count_nodes(profile);
    model->nodes = job_array(model->node_count, sizeof *model->nodes);
    work.sums = job_array(model->node_count, sizeof *work.sums);
    load_estimates(&work);
    load_cells(&work);
    load_nodes(&work);
    contexts_settle_before(model, work.sums);
    contexts_make(model, work.sums);
    job_release(work.sums);
}

/* ---- A profile ---- */

/* What changes while the program runs and is not read with the cells. */
static void take_header(struct model *model, const struct profile *profile) {
    const struct memtrace_header *there = profile_header(profile);
    model->header = profile->header;
    model->header.clock_ns = profile_load_u64(&there->clock_ns);
    model->header.maximum_bytes = profile_load_i64(&there->maximum_bytes);
    model->header.live_bytes = profile_load_i64(&there->live_bytes);
    model->header.peak_error_bytes = profile_load_u64(&there->peak_error_bytes);
    model->header.peak_resident_bytes = profile_load_u64(&there->peak_resident_bytes);
    model->header.own_resident_bytes = profile_load_u64(&there->own_resident_bytes);
    model_bound_own(model);
    model->header.maximum_ns = profile_load_u64(&there->maximum_ns);
    model->header.flags = profile_load_u32(&there->flags);
    model->header.sample_bytes = profile_load_u64(&there->sample_bytes);
    model->header.churn_bytes = profile_load_u64(&there->churn_bytes);
    model->header.snapshot_request = profile_load_u64(&there->snapshot_request);
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        *memtrace_lost(&model->header, kind) = profile_load_u64(memtrace_lost(there, kind));
    }
}

/* Of a profile; 0: not known. */
static uint64_t maximum_time(const struct model *model) {
    uint64_t time_ns =
        (model->header.peak_epoch & 1) != 0 ? model->now_ns : model->header.maximum_ns;
    return time_ns <= model->now_ns ? time_ns : 0;
}

struct loading_model {
    const struct profile *profile;
    bool is_whole;
};

static void load_in_job(struct model *model, void *what) {
    const struct loading_model *loading = what;
    const struct profile *profile = loading->profile;
    memcpy(model->damage, profile->damage, sizeof model->damage);
    model->live = profile->live;
    take_header(model, profile);
    if (loading->is_whole) { /* costs before modules: what a cost refers to was there before it */
        load_contexts(model, profile);
    } else {
        model->node_count = 1;
        model->nodes = job_array(1, sizeof *model->nodes);
    }
    records_load(model, profile);
    if (loading->is_whole) {
        children_load(model, profile);
    }
    if (profile_is_cut(profile)) {
        model_damage(model, "it became shorter while it was read");
    }
    model_finish(model);
    note_sampling(model);
    model->totals.maximum_ns = maximum_time(model);
    timepoints_complete(model, 0, UINT64_MAX, model->header.inherited_bytes);
}

struct model *model_load(const struct profile *profile, struct error *error) {
    struct loading_model loading = {.profile = profile, .is_whole = true};
    return model_make(load_in_job, &loading, error);
}

struct model *model_load_records(const struct profile *profile, struct error *error) {
    struct loading_model loading = {.profile = profile};
    return model_make(load_in_job, &loading, error);
}
