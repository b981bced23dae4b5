/* SPDX-License-Identifier: MIT */
/*
 * diffmatch.h: which leaf of one tree of call paths is which of another. Used by diff.c.
 *
 * From the outermost functions in: the children of two nodes that match are compared function by
 * function. Of calls of one function from several lines
 *   in the same build      those from the same line match
 *   with a tolerance       as many as can, in their order, no further apart than that
 *   else                   in their order, as many as there are on both sides, so that they are
 *                          shifted against each other as evenly as can be
 * What lies below a node without a match has none either, but for paths that lack functions
 * (diffmatch.c).
 */
#ifndef ANALYZE_REPORT_DIFFMATCH_H
#define ANALYZE_REPORT_DIFFMATCH_H

#include "analyze/report/difftree.h"

#define DIFFMATCH_NONE UINT32_MAX

/* Calls back for each pair of leaves, DIFFMATCH_NONE where one is alone, until that does not return
 * 0. 0, that value, or -1: out of memory. */
int diffmatch(const struct difftree trees[2], uint32_t line_tolerance,
              int (*pair)(void *context, uint32_t left, uint32_t right), void *context);

/* Pairs two ascending lists of lines: to[i] is the place of left[i]'s partner or DIFFMATCH_NONE,
 * and partners ascend. 0, or -1: out of memory. */
int diffmatch_lines(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint64_t tolerance, uint32_t *to);
#define DIFFMATCH_ANY UINT64_MAX

#endif
