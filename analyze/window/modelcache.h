/* SPDX-License-Identifier: MIT */
/*
 * modelcache.h: the model and the index of a recording, kept for the next question about it: what
 * took a replay then takes milliseconds. docs/cache.md tells what is kept.
 *
 * Called by cli/source. A file in the cache belongs to one state of a recording: its name is made
 * of all block headers of all parts (sizes, times, checksums), and of the times when the files were
 * written. Whatever is wrong with it, the recording is replayed.
 */
#ifndef ANALYZE_WINDOW_MODELCACHE_H
#define ANALYZE_WINDOW_MODELCACHE_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/wholemodel.h"

enum { MODELCACHE_NAME = 40 };
/* What is kept of a recording is called so: of one state of it; or, where it grows, of all of them.
 * "": out of memory. */
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
