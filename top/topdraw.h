/* SPDX-License-Identifier: MIT */
/*
 * topdraw.h: what is to be on the screen of `memtrace top`.
 *
 * Called by top, for a terminal and for --once.
 */
#ifndef TOP_TOPDRAW_H
#define TOP_TOPDRAW_H

#include "top/topgrid.h"
#include "top/topstate.h"

/* Fills a grid of the size of the screen, with so many lines above the rows. Changes where the
 * screen begins, so that what is selected is on it. */
void topdraw(struct topstate *state, struct topgrid *grid, size_t above);

/* The function of a call, short, or where it lies. */
void topdraw_function(const struct names_frame *frame, struct topgrid_pen *pen);

/* How long the blocks of a row lived and how large they were; and a step of lifetimes: "<4.2 ms",
 * ">=3 min". */
void topdrawblocks(struct topstate *state, struct topgrid *grid, size_t first, size_t end);
void topdrawblocks_lifetime(size_t step, char *text, size_t size);

/* Lines above the rows (the title, totals, charts, headings) and below. */
enum { TOPDRAW_ABOVE = 4, TOPDRAW_BELOW = 1 };
/* Of a screen so high: a low one has neither charts nor, if it is lower still, totals. */
size_t topdraw_above(size_t height);

#endif
