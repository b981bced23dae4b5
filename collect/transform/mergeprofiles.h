/* SPDX-License-Identifier: MIT */
/*
 * mergeprofiles.h: one profile of several processes': sums of each call path, threads side by side.
 *
 * Called by cli/merge, cli/runsource and collect. One thread; one profile at a time is in memory.
 *
 * The maxima are added up, too: what all would hold if each were at its maximum at the same time.
 * Forked children that stayed light stay children of the new profile.
 */
#ifndef COLLECT_TRANSFORM_MERGEPROFILES_H
#define COLLECT_TRANSFORM_MERGEPROFILES_H

#include "analyze/model/model.h"

#include <stddef.h>
#include <stdio.h>

/* Writes the file, in the order of the processes' starts, whatever that of the paths. 0 or -1. */
int merge_profiles(char *const *paths, size_t count, FILE *out, struct error *error);

/* The same, where some files may be recordings, and what light children did counts as what their
 * parents did: but for the maxima, of which nobody knows the call paths. load: makes the model of a
 * recording, which is freed here. */
struct merge_everything {
    struct model *(*load)(void *context, const char *path, struct error *error);
    void *context;
};
int merge_everything(char *const *paths, size_t count, const struct merge_everything *how,
                     FILE *out, struct error *error);

#endif
