/* SPDX-License-Identifier: MIT */
/*
 * mergewrite.h: writes the file that several processes' recordings become, once their tables are
 * one (mergemap.h).
 *
 * Called by collect/merge. One thread.
 */
#ifndef COLLECT_MERGEWRITE_H
#define COLLECT_MERGEWRITE_H

#include "analyze/replay/timeorder.h"
#include "collect/mergemap.h"
#include "collect/rewrite.h"

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
    struct mergemap *map;
    uint64_t start_ns; /* CLOCK_REALTIME */
};

/* 0 or -1 */
int mergewrite_file(struct mergewrite *all, const char *path, const struct rewrite_options *options,
                    struct rewrite_result *result, struct error *error);

#endif
