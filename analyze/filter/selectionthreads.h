/* SPDX-License-Identifier: MIT */
/*
 * selectionthreads.h: which thread allocated and freed the selected lives, and how many bytes they
 * held at each point of the timeline.
 *
 * Called by analyze/model/selectionmodel. Belongs to one thread. Only blocks of the heap count.
 */
#ifndef ANALYZE_FILTER_SELECTIONTHREADS_H
#define ANALYZE_FILTER_SELECTIONTHREADS_H

#include "analyze/filter/selectionsums.h"
#include "analyze/model/model.h"

struct selectionthreads;

/* model: submodel_new(), and narrowed to the view. NULL: out of memory. */
struct selectionthreads *selectionthreads_new(struct model *model);
void selectionthreads_free(struct selectionthreads *threads); /* NULL is allowed */

/* 0, or -1: out of memory. */
int selectionthreads_take(struct selectionthreads *threads, const struct life *life,
                          struct selectionsums_seen seen);

/* Fills the model's threads, foreign frees and timeline. 0, or -1: out of memory. */
int selectionthreads_finish(struct selectionthreads *threads);

#endif
