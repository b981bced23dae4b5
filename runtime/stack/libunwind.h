/* SPDX-License-Identifier: MIT */
/*
 * libunwind.h: walking by libunwind, for MEMTRACE_UNWIND=libunwind: slow, but another's view of the
 * same stack. Loaded on demand and privately, since it exports _Unwind_RaiseException and friends,
 * which would catch the program's own exceptions. It takes locks of its own and the loader's while
 * it walks, so no other mode falls back on it.
 */
#ifndef RUNTIME_STACK_LIBUNWIND_H
#define RUNTIME_STACK_LIBUNWIND_H

#include "runtime/stack/step.h"

struct libunwind;

/* Loads the library; NULL: it is not there. Not to be called where the loader may be inside. */
const struct libunwind *libunwind_load(void);

/* Whether the function whose return slot this is was called by it: while it walks for us, what it
 * asks for is not the program's. libunwind: may be NULL. */
int libunwind_calls(const struct libunwind *libunwind, uintptr_t slot);

struct libunwind_walk {
    struct frame frame;   /* pc, slot; fp is not filled */
    uint64_t cursor[256]; /* unw_cursor_t; the largest of any machine has 250 words */
};

/* To the frame that goes on with this stack pointer: 0, or -1: not found on the way out. */
int libunwind_start(const struct libunwind *libunwind, struct libunwind_walk *walk, uintptr_t sp);
/* One frame outwards. 1, or 0: that was the outermost. */
int libunwind_step(const struct libunwind *libunwind, struct libunwind_walk *walk);

#endif
