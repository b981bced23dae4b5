/* SPDX-License-Identifier: MIT */
/*
 * debuginfod.h: debug files from the servers of $DEBUGINFOD_URLS, by elfutils' libdebuginfod, whose
 * cache is gdb's, too.
 *
 * Used by analyze/symbol, where a command has allowed it; the collector does not. The library is
 * loaded when it is needed first. Any thread; one question at a time.
 */
#ifndef ANALYZE_SYMBOL_DEBUGINFOD_H
#define ANALYZE_SYMBOL_DEBUGINFOD_H

#include "analyze/symbol/symbolmodule.h"

#include <stdbool.h>

/* Files may be fetched from now on. progress, where it is not NULL, is called now and then while
 * one is, with a name for it, and a last time with done = total; from the thread that asked. */
void debuginfod_allow(void (*progress)(const char *what, uint64_t done, uint64_t total));
/* They may not, whatever is said later. */
void debuginfod_refuse(void);

/* Whether servers are named, and may be asked. */
bool debuginfod_is_wanted(void);

/* The path of the module's debug file in the cache, to be freed. NULL: no server has it, or, if
 * problem is not empty then (one line for the user), none can be asked, and none is for a while. */
char *debuginfod_fetch(const struct symbol_module *module, char *problem, size_t problem_size);

#endif
