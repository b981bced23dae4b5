/* SPDX-License-Identifier: MIT */
/*
 * runregions.h: the processes of a run that run now, by their regions.
 *
 * Called by ask/source.c and web/server. Looked for anew each time.
 */
#ifndef ASK_RUNREGIONS_H
#define ASK_RUNREGIONS_H

#include "analyze/read/region.h"

/* Those of the run that the process of this region belongs to: itself, where no run was named.
 * The caller frees *list. *count is 0: it does not run. 0 or -1. */
int runregions_find(const char *path, struct region **list, size_t *count, struct error *error);

#endif
