/* SPDX-License-Identifier: MIT */
/*
 * inject.h: MEMTRACE_INJECT: calls of an allocator that preloading does not reach are led to us, by
 * rewriting the words of loaded objects that hold its functions' addresses. For loader.c.
 */
#ifndef RUNTIME_ENTRY_INJECT_H
#define RUNTIME_ENTRY_INJECT_H

/* Whether it makes no difference to the loader that we open `file` (NULL: the program) for the code
 * at `caller`: no run path of the caller's is searched or named. */
int inject_may_open(const char *file, const void *caller);

/* Rewrites what can be rewritten in all objects that are loaded by now. Takes the loader's lock. */
void inject_run(void);

#endif
