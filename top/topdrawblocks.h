/* SPDX-License-Identifier: MIT */
/*
 * topdrawblocks.h: how long the blocks of a row lived and how large they were, on the screen of
 * `memtrace top`.
 *
 * Called by topdraw.
 */
#ifndef TOP_TOPDRAWBLOCKS_H
#define TOP_TOPDRAWBLOCKS_H

#include "top/topgrid.h"
#include "top/topstate.h"

/* "<4.2 ms", ">=3 min" */
void topdrawblocks_lifetime(size_t step, char *text, size_t size);
void topdrawblocks(struct topstate *state, struct topgrid *grid, size_t first, size_t end);

#endif
