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
     * for in the program alone, with + in libraries alone; of libraries that define malloc what
     * begins with - or + is taken only where it calls no other function of the set. */
    const char *const *functions;
    /* What shows that the allocator is in a file: one of these symbols (allocsets_shows()). */
    const char *const *marks;
    bool is_automatic; /* where it is in the program itself "auto" takes it */
    const char *hint;  /* why there is none of them, and what to do; else NULL */
};

/* name NULL behind the last one. */
extern const struct allocset allocsets[];

#endif
