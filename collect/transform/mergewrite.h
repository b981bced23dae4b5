/* SPDX-License-Identifier: MIT */
/*
 * mergewrite.h: writes the file that several processes' recordings become, once their tables are
 * one (mergetables.h).
 *
 * Called by collect/merge. One thread.
 */
#ifndef COLLECT_TRANSFORM_MERGEWRITE_H
#define COLLECT_TRANSFORM_MERGEWRITE_H

#include "analyze/replay/timeorder.h"
#include "collect/transform/mergetables.h"
#include "collect/transform/transform.h"

/* One process and its files. */
struct mergeprocess {
    struct timeorder_parts parts;
    struct mergesource source;
    uint64_t end_ns; /* in the map's time: its latest event */
    bool has_files;  /* program files, or their symbols, are in its recording */
    uint32_t number;
};

struct mergewrite {
    struct mergeprocess *processes;
    size_t count;
    struct mergetables *map;
    uint64_t start_ns; /* CLOCK_REALTIME */
};

/* 0 or -1 */
int mergewrite_file(struct mergewrite *all, const char *path,
                    const struct transform_options *options, struct transform_result *result,
                    struct error *error);

#endif
