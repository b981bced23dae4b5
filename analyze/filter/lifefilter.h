/* SPDX-License-Identifier: MIT */
/*
 * lifefilter.h: which single blocks a selection's filters of blocks let through.
 *
 * Called by analyze/model/selectionpass. One thread at a time.
 */
#ifndef ANALYZE_FILTER_LIFEFILTER_H
#define ANALYZE_FILTER_LIFEFILTER_H

#include "analyze/filter/selection.h"
#include "analyze/replay/scopes.h"

/* Whether all filters of blocks hold but those of chains. A life that goes on (LIFE_ALIVE) is one
 * that never ends. `run_ns`: how long the run was. */
bool lifefilter_holds(const struct selection *selection, const struct scopes *scopes,
                      uint64_t run_ns, const struct life *life);

/* Whether those of chains hold for the chain whose last block this is. */
bool lifefilter_chain_holds(const struct selection *selection, uint64_t run_ns,
                            const struct life *last);

#endif
