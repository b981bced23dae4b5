/* SPDX-License-Identifier: MIT */
/*
 * load.h: the parts of a model, as they are made of the records of a profile or a recording.
 *
 * Called by analyze/profile, replay, window and filter, which make models, in the job whose memory
 * the model has. One thread for a model.
 */
#ifndef ANALYZE_PROFILE_LOAD_H
#define ANALYZE_PROFILE_LOAD_H

#include "analyze/model/model.h"
#include "analyze/profile/cells.h"

void records_load(struct model *model, const struct profile *profile);
void children_load(struct model *model, const struct profile *profile); /* after the nodes */

/* The class that an innermost frame tells. */
enum model_class contexts_class(uint64_t frame);
/* The buckets of a sum's lifetimes, empty at first. */
uint64_t *contexts_buckets(struct model *model, struct sum *sum);
/* The same where there are some. */
static inline uint64_t *contexts_buckets_of(const struct model *model, const struct sum *sum) {
    return &model->lifetimes[(size_t)(sum->lifetimes - 1) * MEMTRACE_LIFETIME_BUCKETS];
}
/* The bucket of a lifetime of so many clock ticks. */
static inline uint32_t contexts_bucket(uint32_t ticks) {
    uint32_t bits = ticks == 0 ? 0 : 32u - (uint32_t)__builtin_clz(ticks);
    uint32_t bucket = (bits + 1) / 2;
    return bucket < MEMTRACE_LIFETIME_BUCKETS ? bucket : MEMTRACE_LIFETIME_BUCKETS - 1;
}
/* What was there before an attach was held at the start, not allocated. Before contexts_make(). */
void contexts_settle_before(const struct model *model, struct sum *sums);
/* Makes model->contexts of sums[0 .. node_count). */
void contexts_make(struct model *model, const struct sum *sums);

/* records.c: room for so many, then one by one, ids below the count; records_finish() at the end.
 */
void records_reserve_modules(struct model *model, size_t count);
void records_take_module(struct model *model, const struct memtrace_module *record, uint32_t id);
/* Once all are there: paths that take several records. */
void records_join_paths(struct model *model);
void records_reserve_threads(struct model *model, size_t count);
void records_take_thread(struct model *model, const struct memtrace_thread_record *record);
void records_reserve_pools(struct model *model);
void records_take_pool(struct model *model, uint64_t id, const char *name);
void records_finish(struct model *model);

/* Totals and the latest time, when everything else is there. */
void model_finish(struct model *model);
/* Adds the heap's contexts to the totals. Whether there are any. */
bool model_total_contexts(struct model *model);

/* Notes the first thing that does not add up. */
__attribute__((format(printf, 2, 3))) void model_damage(struct model *model, const char *format,
                                                        ...);

/* Of a sampled profile: what its contexts are off by together. */
void model_total_errors(struct model *model);

/* A context's costs into the totals, whatever its class. */
void model_add_context(struct model_totals *totals, const struct model_context *context);

/* A sum that stops at UINT64_MAX: damaged files may hold anything. */
uint64_t model_add(uint64_t left, uint64_t right);

#endif
