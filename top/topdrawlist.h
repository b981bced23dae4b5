/* SPDX-License-Identifier: MIT */
/*
 * topdrawlist.h: the list of programs on the screen of `memtrace top`.
 *
 * Called by topdraw.
 */
#ifndef TOP_TOPDRAWLIST_H
#define TOP_TOPDRAWLIST_H

#include "top/topgrid.h"
#include "top/topstate.h"

/* All but the foot. Changes where the screen begins, so that what is selected is on it. */
void topdrawlist(struct topstate *state, struct topgrid *grid, size_t first, size_t end);

#endif
