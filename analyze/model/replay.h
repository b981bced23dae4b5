/* SPDX-License-Identifier: MIT */
/*
 * replay.h: a recording becomes the model that a profile of the same run would give. All events are
 * gone through once, in the order of timeorder.h.
 *
 * Called by cli. Of one thread's events everything is exact. Of several threads counts and bytes
 * are exact, too; the maximum is that of one possible order, totals.maximum_error_bytes bounds its
 * distance from the true one (peakbound.h). Lifetimes are as fine as the recorded times. A sampled
 * recording gives estimates: each sampled allocation counts for its weight, model.recording.errors
 * are their standard errors.
 */
#ifndef ANALYZE_MODEL_REPLAY_H
#define ANALYZE_MODEL_REPLAY_H

#include "analyze/model/model.h"
#include "analyze/model/timeorder.h"

#include <stdatomic.h>

struct replay_options {
    void (*progress)(void *context, uint64_t done, uint64_t total); /* events; NULL: none */
    void *context;
    uint64_t slice_events; /* the least of a slice of the index (index.h); 0: as is best */
    /* Of passes over lives (lives.h) only: */
    const atomic_bool *cancel; /* the pass ends early once it is true; NULL: never */
    uint64_t until_ns; /* ... and when all that is left happened at this time or behind it, as if
                          the recording ended there; 0: never */
};

/* options may be NULL. NULL: out of memory, or no thread to read with. */
struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error);

#endif
