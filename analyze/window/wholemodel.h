/* SPDX-License-Identifier: MIT */
/*
 * wholemodel.h: a recording becomes the model that a profile of the same run would give. All events
 * are gone through once, in the order of timeorder.h.
 *
 * Called by cli. Of one thread's events everything is exact. Of several threads counts and bytes
 * are exact, too; the maximum is that of one possible order, totals.maximum_error_bytes bounds its
 * distance from the true one (peakbound.h). Lifetimes are as fine as the recorded times. A sampled
 * recording gives estimates: each sampled allocation counts for its weight, model.recording.errors
 * are their standard errors.
 */
#ifndef ANALYZE_WINDOW_WHOLEMODEL_H
#define ANALYZE_WINDOW_WHOLEMODEL_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/index.h"

/* The two halves: all that does not depend on events, NULL: out of memory; and what happened, of an
 * index of all events, which becomes the model's in any case. 0, or -1: out of memory. */
struct model *wholemodel_tables(struct timeorder_parts parts, struct error *error);
int wholemodel_finish(struct model *model, struct timeorder_parts parts, struct index *index);

/* Why there is no model: cancelled, or out of memory. options may be NULL. */
void wholemodel_explain(struct timeorder_parts parts, const struct replay_options *options,
                        struct error *error);

/* options may be NULL. NULL: out of memory, no thread to read with, or cancelled (error says so).
 */
struct model *model_replay(struct timeorder_parts parts, const struct replay_options *options,
                           struct error *error);

#endif
