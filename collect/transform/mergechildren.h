/* SPDX-License-Identifier: MIT */
/*
 * mergechildren.h: the light children of profiles that become one: all their records, and their
 * call paths by the contexts of the new profile.
 *
 * Called by collect/mergeprofiles. One thread.
 */
#ifndef COLLECT_TRANSFORM_MERGECHILDREN_H
#define COLLECT_TRANSFORM_MERGECHILDREN_H

#include "analyze/model/model.h"
#include "collect/profilewrite.h"
#include "collect/transform/mergetables.h"

struct mergechildren {
    struct memtrace_process *records; /* [0] lies under the segment's header */
    size_t count;                     /* that one included; 0: there are none yet */
    struct memtrace_path *paths;      /* of all, one child after the other */
    size_t path_count;
};

/* All zero is empty and ready. */
void mergechildren_free(struct mergechildren *children);

/* The children of a model that was just added to the map. 0, or -1: out of memory. */
int mergechildren_add(struct mergechildren *children, const struct model *model,
                      const struct mergesource *source);

/* Their segments. 0, or -1: out of memory. */
int mergechildren_write(const struct mergechildren *children, struct profilewrite *write);

#endif
