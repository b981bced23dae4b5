/* SPDX-License-Identifier: MIT */
/*
 * wholemodel.h: a recording becomes the model that a profile of the same run would give. All events
 * are gone through once, in the order of timeorder.h.
 *
 * Called by ask, collect and web/server. Of one thread's events everything is exact. Of several
 * threads counts and bytes are exact, too; the maximum is that of one possible order,
 * totals.maximum_error_bytes bounds its distance from the true one (peakbound.h). Lifetimes are as
 * fine as the recorded times. A sampled recording gives estimates: each sampled allocation counts
 * for its weight, model.recording.errors are their standard errors.
 */
#ifndef ANALYZE_WINDOW_WHOLEMODEL_H
#define ANALYZE_WINDOW_WHOLEMODEL_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/wholereplay.h"

/* The two halves: all that does not depend on events, NULL: out of memory; and what happened, of
 * the index of a replay of all events, which becomes the model's in any case. 0, or -1: out of
 * memory.
 */
struct model *wholemodel_tables(struct timeorder_parts parts, struct error *error);
int wholemodel_finish(struct model *model, struct timeorder_parts parts,
                      struct wholereplay *replay);

/* options may be NULL. NULL: out of memory, no thread to read with, or cancelled (error says so).
 */
struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error);

/*
 * ---- Kept for the next question: the index of a recording, in itself or in the cache, so that
 * what took a replay then takes milliseconds. docs/cache.md tells what is kept. A file in the cache
 * belongs to one state of a recording: its name is made of all block headers of all parts (sizes,
 * times, checksums), and of the times when the files were written. Whatever is wrong with it, the
 * recording is replayed. ----
 */

enum { MODELCACHE_NAME = 40 };
/* What is kept of a recording is called so: of one state of it; or, where it grows, of all of them.
 */
void modelcache_name(struct timeorder_parts parts, bool grows, char name[MODELCACHE_NAME]);

/* model_replay(), or what it gave the last time. */
struct model *modelcache_replay(struct timeorder_parts parts, const struct replay_options *options,
                                struct error *error);

/* The two halves. NULL: nothing (or nothing usable) is kept of this recording. */
struct model *modelcache_load(struct timeorder_parts parts);
/* Whether slices are much coarser than they could be, as those in a recording of many call paths
 * are, for which few bytes are allowed, and finer ones could be kept. */
bool modelcache_is_coarse(const struct model *model);
/* Replays such a recording, and keeps finer slices. Whether it did. */
bool modelcache_refine(const struct model *model, struct timeorder_parts parts,
                       const struct replay_options *options);
/* 0, or -1: it is not kept (the cache is off, there is no room). */
int modelcache_store(struct timeorder_parts parts, struct model *model);

#endif
