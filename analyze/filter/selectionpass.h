/* SPDX-License-Identifier: MIT */
/*
 * selectionpass.h: one pass over a recording in which each block that a selection's filters let
 * through is told apart from the others.
 *
 * Called by selection_visit() and selectionmodel. One thread at a time.
 */
#ifndef ANALYZE_FILTER_SELECTIONPASS_H
#define ANALYZE_FILTER_SELECTIONPASS_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

/* Who looks on. Functions may be NULL; one that does not return 0 ends the pass with that value. */
struct selectionpass_visitor {
    /* Every block of the recording, in the order of the replay. */
    int (*begin)(void *context, const struct life *life);
    int (*end)(void *context, const struct life *life); /* not those that never ended */
    /* One that all filters let through, whatever the view: when that is known. After end(). */
    int (*take)(void *context, const struct life *life);
    /* The same at its birth, if selection_asks_ends() does not hold. */
    int (*take_begin)(void *context, const struct life *life);
    int (*other)(void *context, const struct timeorder_event *event);
    struct scopes *scopes; /* as in lives_visitor; NULL: the pass has its own where it needs them */
    void *context;
};

/* `places`: of contextfilter_choose(). Returns as lives_visit() does. */
int selectionpass_run(const struct selection *selection, const struct model *whole,
                      struct timeorder_parts parts, const uint32_t *places,
                      const struct selectionpass_visitor *visitor,
                      const struct replay_options *options, struct error *error);

#endif
