/* SPDX-License-Identifier: MIT */
/*
 * sort.h: sorts places by a number, in time that grows with their count alone, and can be told to
 * stop: of some million items qsort() takes longer than who cancelled a pass wants to wait.
 *
 * Called by what goes through single blocks (analyze/replay/lives, analyze/blocks/detail). Any
 * thread.
 */
#ifndef ANALYZE_BASE_SORT_H
#define ANALYZE_BASE_SORT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct sort_key {
    uint64_t key;
    size_t place; /* of the item in the caller's array */
};

enum sort_status { SORT_DONE = 0, SORT_NO_MEMORY = -1, SORT_CANCELLED = 1 };

/* Equal keys stay in their order. It ends early once `cancel` is true; NULL: never. */
enum sort_status sort_keys(struct sort_key *keys, size_t count, const atomic_bool *cancel);

#endif
