/* SPDX-License-Identifier: MIT */
/*
 * recorded.h: what a recording says beside its events: nodes, threads, modules, pools, samples,
 * culled blocks.
 *
 * Called by analyze/model/replay. Each returns 0, or -1: out of memory; damaged blocks are left
 * out.
 */
#ifndef ANALYZE_MODEL_RECORDED_H
#define ANALYZE_MODEL_RECORDED_H

#include "analyze/model/tally.h"
#include "analyze/read/recording.h"

/* The tree, with one node more for contexts whose node is not there; returns that in *missing. */
int recorded_nodes(struct model *model, const struct recording *recording, uint32_t *missing);

/* Modules and pools. */
int recorded_places(struct model *model, const struct recording *recording);

/* Threads with the counts that the replay gave. */
int recorded_threads(struct model *model, const struct recording *recording,
                     const struct tally *tally);

/* The samples as timeline points, allocations not filled in yet. The caller frees *points. */
int recorded_samples(const struct recording *recording, struct memtrace_point **points,
                     size_t *count);

int recorded_culled(struct tally *tally, const struct recording *recording, uint32_t missing);

#endif
