/* SPDX-License-Identifier: MIT */
/*
 * othermalloc.h: programs whose malloc is not ours: the program defines one itself, or a library
 * does that the loader finds before us. What it gives out is not counted, and that must be said.
 *
 * Called by the constructor, and whoever must know of a sanitizer's runtime in the process.
 */
#ifndef RUNTIME_ENTRY_OTHERMALLOC_H
#define RUNTIME_ENTRY_OTHERMALLOC_H

#include "memtrace/format.h"

/* What the runtimes of sanitizers export that have a malloc. NULL: not in this process. */
extern void __asan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));
extern void __lsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

/* Which malloc the loader binds the program's calls to. */
void othermalloc_look(struct memtrace_malloc *found);
/* Whether the program's own malloc calls the next one, which is ours: it is counted. As far as can
 * be told: it can look for that by name. `executable` is its file. */
int othermalloc_calls_next(const char *executable);
/* One line that says whose it is and what to do; none where it is ours. */
void othermalloc_warn(const struct memtrace_malloc *found, const char *executable);

#endif
