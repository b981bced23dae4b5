/* SPDX-License-Identifier: MIT */
/*
 * inject.h: MEMTRACE_INJECT: calls of an allocator that preloading does not reach are led to us, by
 * rewriting the words of loaded objects that hold its functions' addresses. For loader.c.
 */
#ifndef RUNTIME_REACH_INJECT_H
#define RUNTIME_REACH_INJECT_H

#include <link.h>

/* Whether it makes no difference to the loader that we open `file` (NULL: the program) for the code
 * at `caller`: no run path of the caller's is searched or named. */
int inject_may_open(const char *file, const void *caller);

/* Rewrites what can be rewritten in all objects that are loaded by now. Takes the loader's lock. */
void inject_run(void);

/* --- inject_heap.c ---------------------------------------------------------------------------- */

/* Which function of an allocator has this name; -1: none. */
int inject_heap_function(const char *name);

/* What stands in for `target`, function number `function` of the allocator that lies in object
 * `home`; NULL: that cannot be had. is_known: only if it stands in for `target` already.
 * is_foreign: the object belongs to another C library than ours. One thread at a time. */
void *inject_heap_stand_in(int function, void *target, struct link_map *home, int is_known,
                           int is_foreign);

#endif
