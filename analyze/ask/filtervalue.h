/* SPDX-License-Identifier: MIT */
/*
 * filtervalue.h: what stands behind an option of a filter: ranges, times, spans of time.
 *
 * Called by cli/filters. Each returns 0, or -1 with the reason in error, which does not name the
 * option.
 */
#ifndef ANALYZE_ASK_FILTERVALUE_H
#define ANALYZE_ASK_FILTERVALUE_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"

/* `A..B`, both included, `A..`, `..B`, or `A` alone. */
int filtervalue_sizes(const char *text, struct selection_range *range, struct error *error);
int filtervalue_durations(const char *text, struct selection_range *range, struct error *error);
int filtervalue_counts(const char *text, struct selection_range *range, struct error *error);
int filtervalue_addresses(const char *text, struct selection_range *range, struct error *error);

/* 1.5s, 40%, start, end, peak, mark:NAME, mark:NAME#2. Without a model only what it looks like is
 * checked, and *time_ns is 0. */
int filtervalue_time(const char *text, const struct model *model, uint64_t *time_ns,
                     struct error *error);
/* `T..U`, `T..`, `..U`. */
int filtervalue_times(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error);
/* NAME1,NAME2: from the first such mark to the first of the other name behind it. */
int filtervalue_marks(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error);

#endif
