/* SPDX-License-Identifier: MIT */
/*
 * programfile.h: what a program's file tells, besides names: which allocators are linked into it,
 * and its suppressions for LeakSanitizer.
 *
 * Called by analyze/model/uncounted, analyze/filter/suppressions and cli. Any thread.
 */
#ifndef ANALYZE_SYMBOL_PROGRAMFILE_H
#define ANALYZE_SYMBOL_PROGRAMFILE_H

#include "analyze/symbol/symbol.h"

/* ---- Allocators, by symbols and by texts ---- */

struct allocators {
    const char *name;         /* "jemalloc"; NULL: none that is known */
    const char *another_name; /* "mi_malloc": called as such, besides malloc; NULL: none */
    bool defines_malloc;      /* some function of the program is called malloc */
    bool calls_malloc;        /* it wants malloc, calloc, ... or operator new from a library */
    unsigned machine;         /* e_machine of the file */
    bool holds_runtime;       /* MemTrace is linked into it statically, and leads its malloc */
    bool rules_sanitizer;     /* it sets options of a sanitizer whose runtime is a library */
};

/* Which symbols are looked at; all of a large program take a moment. */
enum allocators_symbols { ALLOCATORS_ALL, ALLOCATORS_DYNAMIC };

/* 0 or -1: the file is gone, or no ELF file. */
int programfile_allocators(const char *path, enum allocators_symbols symbols,
                           struct allocators *found);

/* ---- Suppressions: what a program's function __lsan_default_suppressions() returns, read from its
 * file, without running it. Where the program defines that function, all constant texts of the file
 * are taken that are nothing but such lists (lines "leak:PATTERN", comments, empty lines). One that
 * is put together at run time is not seen; --suppressions names a file then. The program must be on
 * this machine, unchanged ---- */

/* The caller frees the text. NULL: there is none, or it cannot be found. debug_folders may be NULL
 * (as for the symbolizer). */
char *programfile_suppressions(const struct symbol_module *module, const char *debug_folders);

#endif
