/* SPDX-License-Identifier: MIT */
/*
 * mergeprofiles.h: one profile of several processes': sums of each call path, threads side by side.
 *
 * Called by cli/merge. One thread; one profile at a time is in memory.
 *
 * The maxima are added up, too: what all would hold if each were at its maximum at the same time.
 */
#ifndef COLLECT_MERGEPROFILES_H
#define COLLECT_MERGEPROFILES_H

#include "analyze/read/error.h"

#include <stddef.h>
#include <stdio.h>

/* Writes the file, in the order of the processes' starts, whatever that of the paths. 0 or -1. */
int merge_profiles(char *const *paths, size_t count, FILE *out, struct error *error);

#endif
