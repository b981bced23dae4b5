/* SPDX-License-Identifier: MIT */
/*
 * merge.h: one recording of several: the parts of a rotated one, wherever they lie, or those of
 * several processes, whose contexts, modules and pools become one and whose threads stay apart.
 *
 * Called by cli/merge and ask. One thread, a job of its own. Memory grows with contexts and live
 * blocks of the largest one.
 */
#ifndef COLLECT_TRANSFORM_MERGE_H
#define COLLECT_TRANSFORM_MERGE_H

#include "collect/transform/transform.h"

struct merge_result {
    struct transform_result written;
    size_t processes;
    size_t files;
};

/* Writes the file `path`, which is replaced if it is there. The recordings are in any order; those
 * of one process are its parts. 0 or -1. */
int merge_recordings(const struct recording *const *recordings, size_t count, const char *path,
                     const struct transform_options *options, struct merge_result *result,
                     struct error *error);

#endif
