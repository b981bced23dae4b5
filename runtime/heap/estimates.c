/* SPDX-License-Identifier: MIT */
/* estimates.c: see estimates.h. */
#include "runtime/heap/estimates.h"

#include "runtime/base/compiler.h"

enum { LEAVES = 1 << (MEMTRACE_CONTEXT_BITS - 10) };

static struct memtrace_estimate *leaves[LEAVES];
static uint32_t leaves_end; /* behind the last that was opened */

struct variance estimates_variance(uint64_t size, uint64_t bytes, double probability) {
    return (struct variance){.bytes = estimates_variance_of(size, bytes),
                             .count = (1 - probability) / (probability * probability)};
}

double estimates_variance_of(uint64_t size, uint64_t bytes) {
    return bytes > size ? (double)bytes * (double)(bytes - size) : 0;
}

/* NULL: no room. The counters stay estimates without an error then. */
static struct memtrace_estimate *estimate_of(struct space *space, uint32_t context) {
    uint32_t index = context / MEMTRACE_LEAF_ITEMS;
    struct memtrace_estimate *leaf = LOAD_ACQUIRE(&leaves[index]);
    if (leaf == NULL) {
        uint32_t end = LOAD_RELAXED(&leaves_end);
        while (end <= index && !__atomic_compare_exchange_n(&leaves_end, &end, index + 1, 1,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        leaf = space_leaf(space, &leaves[index], MEMTRACE_SEGMENT_ESTIMATES, index,
                          sizeof(struct memtrace_estimate), MEMTRACE_LEAF_ITEMS);
    }
    return leaf != NULL ? leaf + (context & (MEMTRACE_LEAF_ITEMS - 1)) : NULL;
}

void estimates_sum(double *sum, double value) {
    double old;
    double fresh;
    __atomic_load(sum, &old, __ATOMIC_RELAXED);
    do {
        fresh = old + value;
    } while (!__atomic_compare_exchange(sum, &old, &fresh, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void estimates_add(struct space *space, uint32_t context, struct variance variance) {
    struct memtrace_estimate *estimate = estimate_of(space, context);
    if (estimate != NULL) {
        estimates_sum(&estimate->total_variance, variance.bytes);
        estimates_sum(&estimate->count_variance, variance.count);
        __atomic_fetch_add(&estimate->samples, 1, __ATOMIC_RELAXED);
    }
}

void estimates_free(struct space *space, uint32_t context, double bytes_variance) {
    struct memtrace_estimate *estimate = estimate_of(space, context);
    if (estimate != NULL) {
        estimates_sum(&estimate->freed_variance, bytes_variance);
    }
}

void estimates_fork(void) {
    if (leaves_end != 0) {
        __builtin_memset(leaves, 0, leaves_end * sizeof leaves[0]);
        leaves_end = 0;
    }
}
