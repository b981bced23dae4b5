/* SPDX-License-Identifier: MIT */
/*
 * allocators.h: which allocators are linked into a program, by its symbols and by texts in it.
 *
 * Called by analyze/model/uncounted. Any thread.
 */
#ifndef ANALYZE_SYMBOL_ALLOCATORS_H
#define ANALYZE_SYMBOL_ALLOCATORS_H

#include <stdbool.h>

struct allocators {
    const char *name;         /* "jemalloc"; NULL: none that is known */
    const char *another_name; /* "mi_malloc": called as such, besides malloc; NULL: none */
    bool defines_malloc;      /* some function of the program is called malloc */
    bool calls_malloc;        /* it wants malloc, calloc, ... or operator new from a library */
    bool rules_sanitizer;     /* it sets options of a sanitizer whose runtime is a library */
};

/* Which symbols are looked at; all of a large program take a moment. */
enum allocators_symbols { ALLOCATORS_ALL, ALLOCATORS_DYNAMIC };

/* 0 or -1: the file is gone, or no ELF file. */
int allocators_find(const char *path, enum allocators_symbols symbols, struct allocators *found);

#endif
