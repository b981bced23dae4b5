/* SPDX-License-Identifier: MIT */
/*
 * strip.h: leaves short-lived blocks out of a recording that is rewritten, both ends, and keeps
 * their sums (MEMTRACE_BLOCK_CULLED), as culling does while a program runs (collect/cull.h).
 *
 * Called by cli/strip. One thread, in a job. Which blocks go is decided in a pass of its own.
 */
#ifndef COLLECT_TRANSFORM_STRIP_H
#define COLLECT_TRANSFORM_STRIP_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/wholemodel.h"
#include "collect/transform/transform.h"

struct strip_options {
    uint64_t below_ns; /* blocks that lived shorter go */
    bool temporary;    /* blocks that were freed before their thread's next allocation go */
};

struct strip;

/* Looks through the recording, whose model is `whole`. Blocks of a sampled recording that stand for
 * others stay, and so do custom pools' if they are only temporary. It is the job's. */
struct strip *strip_new(struct timeorder_parts parts, const struct model *whole,
                        const struct strip_options *options,
                        const struct replay_options *replay_options);

/* For transform_run(), in the same job. */
struct transform_step strip_step(struct strip *strip);

/* How many blocks go, and their bytes. */
uint64_t strip_count(const struct strip *strip, uint64_t *bytes);

#endif
