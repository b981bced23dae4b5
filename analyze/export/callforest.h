/* SPDX-License-Identifier: MIT */
/*
 * callforest.h: the trees of all costs (mergedtree.h) laid over each other: one tree in which each
 * call has every cost, cut down to a number of calls.
 *
 * Used inside analyze/export. Invariants, for every call but the root (index 0):
 *   parent < its own index; depth = depth of the parent + 1; cost of a call >= cost of its callees
 *   a call that is kept has a parent that is kept, and a number greater than its parent's
 */
#ifndef ANALYZE_EXPORT_CALLFOREST_H
#define ANALYZE_EXPORT_CALLFOREST_H

#include "analyze/base/numbermap.h"
#include "analyze/export/export.h"

enum { CALLFOREST_DEPTH = 512 }; /* deeper calls are never kept */

struct callforest_call {
    const struct names_frame *frame; /* NULL: the root */
    uint32_t parent;
    uint32_t depth;
    uint32_t number; /* among those kept; the root's is 0; CALLFOREST_OUT: left out */
    bool recursive;
    uint64_t self[EXPORT_COSTS];
    uint64_t cost[EXPORT_COSTS];
    uint64_t self_side[EXPORT_COSTS]; /* what reports show beside it: struct cost */
    uint64_t cost_side[EXPORT_COSTS];
};
#define CALLFOREST_OUT UINT32_MAX

struct callforest {
    struct callforest_call *calls;
    size_t count;
    size_t room;
    size_t kept;            /* the root, too */
    double least_share;     /* each call left out bears no more of any cost, or is too deep */
    struct numbermap index; /* of calls, by their ids */
};

/* All is kept at first, but for what is too deep. 0 or -1. */
int callforest_open(struct callforest *forest, const struct export *export, struct error *error);
void callforest_close(struct callforest *forest);

/* Keeps the dearest, at most `most` (at least 1: the root). 0, or -1: out of memory. */
int callforest_keep(struct callforest *forest, size_t most);

#endif
