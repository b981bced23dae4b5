/* SPDX-License-Identifier: MIT */
/*
 * topscreen.h: the terminal, by ncurses: shows a grid, hands out keys.
 *
 * Called by top. The terminal is as it was after topscreen_close().
 */
#ifndef TOP_TOPSCREEN_H
#define TOP_TOPSCREEN_H

#include "analyze/base/error.h"
#include "top/topgrid.h"

#include <stdbool.h>

/* Whether the terminal is of a kind that is known, and on which nothing can be put at its place
 * (TERM=dumb: an editor's shell). */
bool topscreen_is_dumb(void);

/* 0, or -1: error is set (no terminal that it knows). */
int topscreen_open(bool color, struct error *error);
void topscreen_close(void);

/* Makes the grid as large as the terminal is now. 0, or -1: out of memory. */
int topscreen_fit(struct topgrid *grid);
void topscreen_show(const struct topgrid *grid);
/* Draws all of it anew: somebody else wrote on the terminal. */
void topscreen_redraw(void);

/* Hands a text to the terminal's clipboard, where it has one that programs may write. */
void topscreen_copy(const char *text);

/* A key as topstate_press() takes it; 0: none is there, or it is none of ours. Does not wait.
 * *is_gone: there is no terminal any more. */
unsigned topscreen_key(bool *is_gone);

#endif
