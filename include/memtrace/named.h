/* SPDX-License-Identifier: MIT */
/*
 * named.h: what the compiler passes put into a function that ALLOCATORS names, and the runtime
 * answers: functions of a program that allocate report by themselves (docs/allocators.md).
 *
 * For each such function there is one struct memtrace_named in the data of the unit, whose fields
 * the pass fills. Calls are made only where the runtime is there: the functions are weak. Those
 * that free (kinds FREE and RESET) report where they begin; those that allocate report where they
 * return, with their arguments as they were at the beginning. One that reallocates reports at its
 * beginning, too, and where it is left by an exception, with no block and a size of 1: so the older
 * block stays.
 */
#ifndef MEMTRACE_NAMED_H
#define MEMTRACE_NAMED_H

#include "memtrace/signature.h"

#include <stddef.h>

struct memtrace_named {
    const void *function; /* where it begins; NULL: that is not known, or nowhere */
    uint64_t runtime;     /* 0; then what the runtime remembers */
    struct memtrace_allocator_signature signature;
    char reserved;
    char pool[MEMTRACE_SITE_NAME]; /* its name; empty where blocks are the heap's */
};

/* What a function that reallocates keeps on its stack, in words, for the runtime. */
enum { MEMTRACE_NAMED_KEPT = 8 };

#define MEMTRACE_NAMED_WEAK __attribute__((weak, visibility("default")))

/* block: NULL: there is none. It has size * times bytes; a size of 0: as many as a function that
 * was called has said of it, or none. kept: as memtrace_named_resizes() left it, or NULL. */
MEMTRACE_NAMED_WEAK void memtrace_named_returns(struct memtrace_named *named, const void *block,
                                                size_t size, size_t times, size_t align,
                                                uint64_t *kept);
/* The block `old` is about to be changed. */
MEMTRACE_NAMED_WEAK void memtrace_named_resizes(struct memtrace_named *named, const void *old,
                                                uint64_t *kept);
/* The block, or all of the pool, are about to be freed. */
MEMTRACE_NAMED_WEAK void memtrace_named_leaves(struct memtrace_named *named, const void *block);

#endif
