/* SPDX-License-Identifier: MIT */
/*
 * flagsallocators.h: what `memtrace flags` knows of functions that allocate (docs/allocators.md):
 * the flags that name them to a compiler's plugin, and what plugins have written into what they
 * built.
 *
 * Called by flags.c.
 */
#ifndef CLI_FLAGSALLOCATORS_H
#define CLI_FLAGSALLOCATORS_H

#include "ask/option.h"

/* Of an option --alloc, which may come more than once: adds to a char *, lines of specifications.
 */
int flagsallocators_add(void *member, const struct option *option, const char *value,
                        struct error *error);

/* Prints what is recorded in these files. The exit status, with lines printed. */
int flagsallocators_list(char **files, int count);

#endif
