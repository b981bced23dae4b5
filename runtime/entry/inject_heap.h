/* SPDX-License-Identifier: MIT */
/*
 * inject_heap.h: other allocators than the one under ours, each with functions of ours that stand
 * in for its own. A stand-in counts and calls exactly the function that it stands for: so whoever
 * is led to it gets the memory that he would have got, and gives it back to where it came from.
 */
#ifndef RUNTIME_ENTRY_INJECT_HEAP_H
#define RUNTIME_ENTRY_INJECT_HEAP_H

#include <link.h>
#include <stdint.h>

/* Which function of an allocator has this name; -1: none. */
int inject_heap_function(const char *name);

/* What stands in for `target`, function number `function` of the allocator that lies in object
 * `home`; NULL: that cannot be had. is_known: only if it stands in for `target` already.
 * is_foreign: the object belongs to another C library than ours. One thread at a time. */
void *inject_heap_stand_in(int function, void *target, struct link_map *home, int is_known,
                           int is_foreign);

#endif
