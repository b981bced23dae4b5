/* SPDX-License-Identifier: MIT */
/*
 * recordingtables.h: what a recording says beside its events, in all its parts: nodes, threads,
 * modules, pools, samples, culled blocks.
 *
 * Called by analyze/window/wholemodel. Each returns 0, or -1: out of memory; damaged blocks are
 * left out.
 */
#ifndef ANALYZE_WINDOW_RECORDINGTABLES_H
#define ANALYZE_WINDOW_RECORDINGTABLES_H

#include "analyze/model/model.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/sums.h"

/* The tree, and at its end one node more, for contexts whose node is not there. */
int recorded_nodes(struct model *model, struct timeorder_parts parts);

/* Modules and pools. */
int recorded_places(struct model *model, struct timeorder_parts parts);

/* Threads with the counts that the replay gave. */
int recorded_threads(struct model *model, struct timeorder_parts parts, const struct sums *sums);

/* The samples as timeline points, allocations not filled in yet. The caller frees *points. */
int recorded_samples(struct timeorder_parts parts, struct memtrace_point **points, size_t *count);

/* The samples as they are, by time. The caller frees *samples. */
int recorded_process(struct timeorder_parts parts, struct memtrace_sample **samples, size_t *count);

/* What the events leave out, as far as it was written down in [from, to), as a slice. */
int recorded_culled(const struct model *model, struct timeorder_parts parts, uint64_t from_ns,
                    uint64_t to_ns, struct slice *slice);

#endif
