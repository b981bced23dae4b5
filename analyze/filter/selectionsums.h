/* SPDX-License-Identifier: MIT */
/*
 * selectionsums.h: the costs of selected lives, added up by context, with what they held when the
 * whole process held most in a view.
 *
 * Called by analyze/model/selectionmodel. Belongs to one thread.
 *
 * The maximum takes one pass, though whether a life is selected is often known only when it is
 * over: the moment of the maximum so far, `peak.place`, is a place in the order of the replay. A
 * life that is taken held its bytes then if its birth is not behind that place and its death is;
 * where this differs from what it holds at the end, the cell's `adjust` keeps the difference. A
 * later and higher maximum makes all adjustments void, and each life that was taken before it is
 * over by then or holds its bytes at both times. So
 *   bytes at the maximum == live bytes at the end + adjust, if adjust is of the last maximum
 */
#ifndef ANALYZE_FILTER_SELECTIONSUMS_H
#define ANALYZE_FILTER_SELECTIONSUMS_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/profile/load.h"

struct selectionsums_cell {
    struct sum sum; /* counts in units of 1 / ACCOUNTS_ONE; without peak_bytes */
    uint64_t live_bytes;
    uint64_t base_units; /* held when the view begins */
    uint64_t adjust;     /* wraps: it may be less than 0 */
    uint32_t epoch;      /* of adjust */
    double total_variance;
    double live_variance;
};

struct selectionsums {
    struct selection_times view;
    const struct model *whole;
    struct model *model;              /* to be filled: submodel_new(whole) */
    const uint32_t *places;           /* of contextfilter_choose() */
    struct selectionsums_cell *cells; /* whole->context_count */
    struct selectionsums_peak {
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

/* 0, or -1: out of memory. */
int selectionsums_start(struct selectionsums *sums);
void selectionsums_end(struct selectionsums *sums);

/* Every block of the recording, in order. */
void selectionsums_begin_any(struct selectionsums *sums, const struct life *life);
void selectionsums_end_any(struct selectionsums *sums, const struct life *life);
/* A selected one, at its end or later. 0, or -1: out of memory. */
int selectionsums_take(struct selectionsums *sums, const struct life *life);

/* Fills the model's contexts, lifetimes and errors. 0, or -1: out of memory. */
int selectionsums_finish(struct selectionsums *sums);

/* How a view sees a life that is not wholly outside of it. */
struct selectionsums_seen {
    bool at_all;
    bool born; /* in the view, not before */
    bool died; /* in it, not behind */
};
struct selectionsums_seen selectionsums_see(struct selection_times view, const struct life *life);

#endif
