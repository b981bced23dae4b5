/* SPDX-License-Identifier: MIT */
/*
 * heaptrack.h: what the two ways to fill a heaptrack file have in common. Used by heaptrack.c.
 */
#ifndef ANALYZE_EXPORT_HEAPTRACK_H
#define ANALYZE_EXPORT_HEAPTRACK_H

#include "analyze/export/heaptracktext.h"

/*
 * heaptracksum.c: events that add up to what a model says: of each context its allocations, its
 * temporary ones, what it held at the maximum and at the end. Their order, and sizes but for the
 * sums, are made up. 0, or -1: there would be too many.
 */
int heaptrack_put_sums(struct heaptracktext *text, struct error *error);

/* Whether so many blocks, of which no events are there, shall not be made up: one of them is a line
 * or two, and a small file may count any number. */
bool heaptrack_is_too_much(uint64_t blocks);

/* Blocks of `bytes` together that begin and end at once, so many of them temporary. */
void heaptrack_put_brief(struct heaptracktext *text, uint32_t context, uint64_t count,
                         uint64_t bytes, uint64_t temporary);

#endif
