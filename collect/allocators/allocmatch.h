/* SPDX-License-Identifier: MIT */
/*
 * allocmatch.h: whether a specification names a function, by the names that the function has.
 *
 * Called by allocfind.c, and by the compiler passes (instrument/allocators). Any thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCMATCH_H
#define COLLECT_ALLOCATORS_ALLOCMATCH_H

#include "collect/allocators/allocspec.h"

/* `name` is the linker's, a version behind an @ included. demangle: that name as programmers write
 * it, with its parameters, to be freed; NULL: it is the same. */
bool allocmatch_symbol(const struct allocspec *spec, const char *name,
                       char *(*demangle)(const char *symbol));

/* Whether `name` is a copy of the function `of` that the compiler calls in its place. */
bool allocmatch_is_copy(const char *name, const char *of);

/* Whether `name`, of so many bytes, is the wanted one. */
bool allocmatch_is(const char *wanted, const char *name, size_t length);

/* How long a name as programmers write it is without its parameters. */
size_t allocmatch_length(const char *name);

#endif
