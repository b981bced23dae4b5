/* SPDX-License-Identifier: MIT */
/*
 * recordingtables.h: what a recording says beside its events, in all its parts: nodes, threads,
 * modules, pools, samples, culled blocks; when events were lost (MEMTRACE_BLOCK_GAP), or left out
 * since too many came (MEMTRACE_BLOCK_THINNED); and what the program itself had counted at its end
 * (MEMTRACE_BLOCK_TOTALS), which is right whatever was lost.
 *
 * Called by analyze/window, analyze/report, analyze/blocks and collect/recordevents. All but the
 * last one in a job, whose memory is what they return. Damaged blocks are left out.
 */
#ifndef ANALYZE_WINDOW_RECORDINGTABLES_H
#define ANALYZE_WINDOW_RECORDINGTABLES_H

#include "analyze/model/model.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/sums.h"

/* The tree, and at its end one node more, for contexts whose node is not there. */
void recorded_nodes(struct model *model, struct timeorder_parts parts);

/* Modules and pools. */
void recorded_places(struct model *model, struct timeorder_parts parts);

/* Threads with the counts that the replay gave. */
void recorded_threads(struct model *model, struct timeorder_parts parts, const struct sums *sums);

/* The samples as timeline points, allocations not filled in yet. */
struct memtrace_point *recorded_samples(struct timeorder_parts parts, size_t *count);

/* The samples as they are, by time. */
struct memtrace_sample *recorded_process(struct timeorder_parts parts, size_t *count);

/* What the events leave out, as far as it was written down in [from, to), as a slice. */
void recorded_culled(const struct model *model, struct timeorder_parts parts, uint64_t from_ns,
                     uint64_t to_ns, struct slice *slice);

/* What blocks of one of the two kinds of gaps say, by time, those that touch as one. */
struct model_gap *recorded_gaps(struct timeorder_parts parts, enum memtrace_block_kind kind,
                                size_t *count);

/* The program's counters. false: there are none, or not those of these parts alone. */
bool recorded_totals(struct timeorder_parts parts, struct slice *totals);

/* The model of a profile as such a slice, as bytes. 0, or -1: out of memory. */
int recorded_pack_totals(const struct model *model, struct varint_writer *bytes);

#endif
