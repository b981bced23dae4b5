/* SPDX-License-Identifier: MIT */
/*
 * load.c: a profile becomes a model: its header, totals and times. The parts: columns.c and
 * contexts.c (costs of contexts), records.c (threads, modules, pools, timeline), children.c.
 */
#include "analyze/profile/load.h"

#include "analyze/profile/timepoints.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What changes while the program runs and is not read with the cells. */
static void take_header(struct model *model, const struct profile *profile) {
    const struct memtrace_header *there = profile_header(profile);
    model->header = profile->header;
    model->header.clock_ns = profile_load_u64(&there->clock_ns);
    model->header.maximum_bytes = profile_load_i64(&there->maximum_bytes);
    model->header.live_bytes = profile_load_i64(&there->live_bytes);
    model->header.peak_error_bytes = profile_load_u64(&there->peak_error_bytes);
    model->header.peak_resident_bytes = profile_load_u64(&there->peak_resident_bytes);
    model->header.maximum_ns = profile_load_u64(&there->maximum_ns);
    model->header.flags = profile_load_u32(&there->flags);
    model->header.sample_bytes = profile_load_u64(&there->sample_bytes);
    model->header.churn_bytes = profile_load_u64(&there->churn_bytes);
    model->header.snapshot_request = profile_load_u64(&there->snapshot_request);
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        *memtrace_lost(&model->header, kind) = profile_load_u64(memtrace_lost(there, kind));
    }
}

void model_finish(struct model *model) {
    model->to_ns = UINT64_MAX;
    total(model);
    model->now_ns = latest_time(model);
}

/* Of a profile; 0: not known. */
static uint64_t maximum_time(const struct model *model) {
    uint64_t time_ns =
        (model->header.peak_epoch & 1) != 0 ? model->now_ns : model->header.maximum_ns;
    return time_ns <= model->now_ns ? time_ns : 0;
}

struct model *model_load(const struct profile *profile, struct error *error) {
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        error_set(error, "out of memory while reading %s", profile->path);
        return NULL;
    }
    memcpy(model->damage, profile->damage, sizeof model->damage);
    model->live = profile->live;
    take_header(model, profile);
    /* Costs before nodes and modules: what a cost refers to was there before it. */
    if (columns_load(model, profile) != 0 || records_load(model, profile) != 0 ||
        children_load(model, profile) != 0) {
        error_set(error, "out of memory while reading %s", profile->path);
        model_free(model);
        return NULL;
    }
    if (profile_is_cut(profile)) {
        model_damage(model, "it became shorter while it was read");
    }
    model_finish(model);
    note_sampling(model);
    model->totals.maximum_ns = maximum_time(model);
    if (timepoints_complete(model, 0, UINT64_MAX, model->header.inherited_bytes) != 0) {
        error_set(error, "out of memory while reading %s", profile->path);
        model_free(model);
        return NULL;
    }
    return model;
}
