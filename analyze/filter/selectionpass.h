/* SPDX-License-Identifier: MIT */
/*
 * selectionpass.h: what a selection's filters let through: contexts, and blocks in one pass over a
 * recording.
 *
 * Shared by selection.c, which does it, and selectionmodel.c. One thread at a time.
 */
#ifndef ANALYZE_FILTER_SELECTIONPASS_H
#define ANALYZE_FILTER_SELECTIONPASS_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

/* places[id]: the place of context `id` in whole->contexts, from 1 on, if the filters hold for it;
 * 0: they do not, or it has no counts. As many as the model has nodes; the caller frees it. `names`
 * may be NULL where the selection has no patterns. NULL: out of memory. */
uint32_t *selection_contexts(const struct selection *selection, const struct model *whole,
                             const struct names *names);

/* Whether some byte of the block lay in one of them, at some time. */
bool selection_is_in_mappings(const struct selection_mappings *mappings, const struct life *life);
void selection_free_mappings(struct selection_mappings *mappings);

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

/* `places`: of selection_contexts(). Returns as lives_visit() does. */
int selectionpass_run(const struct selection *selection, const struct model *whole,
                      struct timeorder_parts parts, const uint32_t *places,
                      const struct selectionpass_visitor *visitor,
                      const struct replay_options *options, struct error *error);

#endif
