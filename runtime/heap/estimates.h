/* SPDX-License-Identifier: MIT */
/*
 * estimates.h: what chance adds to each context's counters, one table for all threads, since
 * sampled blocks are few (format.h: struct memtrace_estimate). Used by entry/sampled_mode and
 * entry/child. Any thread at any time: sums grow by compare-and-swap.
 */
#ifndef RUNTIME_HEAP_ESTIMATES_H
#define RUNTIME_HEAP_ESTIMATES_H

#include "memtrace/sampled.h"
#include "runtime/base/space.h"

/* Of one block or of all: of sums of bytes, and of numbers of blocks. */
struct variance {
    double bytes;
    double count;
};

/* Of a block of `size` bytes that stands for `bytes`, picked with this probability. */
struct variance estimates_variance(uint64_t size, uint64_t bytes, double probability);
/* Of bytes alone: the same when it is freed. */
double estimates_variance_of(uint64_t size, uint64_t bytes);

/* What a thread samples in `context`, and what it frees of it. */
void estimates_add(struct space *space, uint32_t context, struct variance variance);
void estimates_free(struct space *space, uint32_t context, double bytes_variance);
/* Adds to a number that others add to, too. */
void estimates_sum(double *sum, double value);
/* In a forked child, whose segments are its own: forgets its parent's. */
void estimates_fork(void);

#endif
