/* SPDX-License-Identifier: MIT */
/*
 * chains.h: the ended blocks of chains of reallocations that still go on, kept until it is known
 * how they end.
 *
 * Called by analyze/filter/selection. Belongs to the job that it was made in. Memory: the lives
 * that are kept.
 */
#ifndef ANALYZE_REPLAY_CHAINS_H
#define ANALYZE_REPLAY_CHAINS_H

#include "analyze/replay/lives.h"

struct chains;

struct chains *chains_new(void);
/* Frees it early. NULL is allowed. */
void chains_free(struct chains *chains);

/* Keeps this life of its chain. */
void chains_keep(struct chains *chains, const struct life *life);

/* Takes out all that is kept of the chain that `life` belongs to, oldest first; the caller
 * releases it. NULL: nothing is kept. */
struct life *chains_take(struct chains *chains, const struct life *life, size_t *count);

#endif
