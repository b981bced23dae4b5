/* SPDX-License-Identifier: MIT */
/*
 * sums.h: slices of a recording (slice.h), added up, become the costs of a model: of its contexts,
 * threads, totals and the peak. Slices before the view tell what was held when it began.
 *
 * Called by analyze/window, and by analyze/filter for what its own sums of blocks share with these.
 * Belongs to one thread.
 */
#ifndef ANALYZE_WINDOW_SUMS_H
#define ANALYZE_WINDOW_SUMS_H

#include "analyze/model/model.h"
#include "analyze/profile/load.h"
#include "analyze/replay/slice.h"

struct sums_thread {
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
    uint64_t foreign_units, foreign_bytes;
    uint64_t held_bytes; /* wraps below 0 */
};

struct sums {
    struct model *model; /* its nodes are there */
    struct sum *cells;   /* model->node_count; counts in units */
    struct sums_thread *threads;
    struct foreign foreign; /* blocks in units */
    struct slice all;       /* of the view, without bytes */
    int64_t base;           /* the heap's live bytes where it began */
    double base_variance;
    uint32_t epoch;
};

/* They belong to the present job, as the model does. */
void sums_start(struct sums *sums, struct model *model);
/* Frees them early. */
void sums_end(struct sums *sums);

/* Those in the view in the order of the replay. */
void sums_add_before(struct sums *sums, const struct slice *slice);
void sums_add(struct sums *sums, const struct slice *slice);
/* As sums_add(), of a part of what was added before the view: it is no longer before it. Not of
 * samples, whose variances would be rounded twice. */
void sums_move(struct sums *sums, const struct slice *slice);

/* All that was added, as one slice. Before sums_finish(). */
void sums_pack(struct sums *sums, struct slice *slice);

/* Counts of a thread, in whole allocations. */
struct sums_thread sums_thread(const struct sums *sums, uint32_t id);
/* Of counts in units, the thread's, and what each freed of others'. */
void sums_fill_thread(struct model_thread *thread, const struct sums_thread *counts);
void sums_fill_foreign(struct model *model, struct foreign *foreign);
/* The standard error of what has this variance, which rounding may have left below 0. */
double sums_root(double variance);

/* Fills contexts, lifetimes, foreign frees, and in the header what is held and the maximum. */
void sums_finish(struct sums *sums);

#endif
