/* SPDX-License-Identifier: MIT */
/*
 * allocsets.h: ready-made sets of functions of known allocators (--alloc jemalloc).
 *
 * Read by allocspec.c and allocators.c.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCSETS_H
#define COLLECT_ALLOCATORS_ALLOCSETS_H

#include <stdbool.h>

struct allocset {
    const char *name;
    /* Specifications as users write them, NULL behind the last one. What begins with ^ is looked
     * for in the program and in libraries that have a malloc of their own alone
     * (allocfind_has_own()), with + in libraries alone; of libraries that define malloc what begins
     * with - or + is taken only where it calls no other function of the set. */
    const char *const *functions;
    /* What shows that the allocator is in a file: one of these symbols (allocsets_shows()). */
    const char *const *marks;
    bool is_automatic; /* where it is in the program itself "auto" takes it */
    bool is_heap;      /* and where a library has it for itself alone, since nothing counts it */
    bool is_unknown;   /* it is any malloc that no other set of the heap's is for */
    const char *hint;  /* why there is none of them, and what to do; else NULL */
};

/* name NULL behind the last one. */
extern const struct allocset allocsets[];

#endif
