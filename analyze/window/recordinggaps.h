/* SPDX-License-Identifier: MIT */
/*
 * recordinggaps.h: when events of a recording were lost (MEMTRACE_BLOCK_GAP), or left out since too
 * many came (MEMTRACE_BLOCK_THINNED), and what the program
 * itself had counted at its end (MEMTRACE_BLOCK_TOTALS), which is right whatever was lost.
 *
 * Called by analyze/window, analyze/report and collect/recordgap.
 */
#ifndef ANALYZE_WINDOW_RECORDINGGAPS_H
#define ANALYZE_WINDOW_RECORDINGGAPS_H

#include "analyze/model/model.h"
#include "analyze/replay/slice.h"
#include "analyze/replay/timeorder.h"

/* What blocks of this kind, one of these two, say, by time, those that touch as one. The caller
 * frees *gaps. Damaged blocks are left out. 0, or -1: out of memory. */
int recordinggaps_read(struct timeorder_parts parts, enum memtrace_block_kind kind,
                       struct model_gap **gaps, size_t *count);

/* The program's counters. 1; 0: there are none, or not those of these parts alone; -1: out of
 * memory. */
int recordinggaps_totals(struct timeorder_parts parts, struct slice *totals);

/* The model of a profile as such a slice. 0, or -1: out of memory. */
int recordinggaps_pack(const struct model *model, struct slice *totals);

#endif
