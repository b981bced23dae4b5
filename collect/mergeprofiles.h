/* SPDX-License-Identifier: MIT */
/*
 * mergeprofiles.h: one profile of several processes': sums of each call path, threads side by side.
 *
 * Called by cli/merge, ask and collect/runfolder. One thread; one profile at a time is in memory.
 * It is a job of its own.
 *
 * The maxima are added up, too: what all would hold if each were at its maximum at the same time.
 * Forked children that stayed light stay children of the new profile.
 */
#ifndef COLLECT_MERGEPROFILES_H
#define COLLECT_MERGEPROFILES_H

#include "analyze/model/model.h"

#include <stddef.h>
#include <stdio.h>

/* Makes the model of a recording, which is freed here. */
typedef struct model *model_loader(void *context, const char *path, struct error *error);

/* Writes the file, in the order of the processes' starts, whatever that of the paths. With `load`
 * some files may be recordings, and what light children did counts as what their parents did: but
 * for the maxima, of which nobody knows the call paths. NULL: all are profiles. 0 or -1. */
int merge_profiles(char *const *paths, size_t count, model_loader *load, void *context, FILE *out,
                   struct error *error);

#endif
