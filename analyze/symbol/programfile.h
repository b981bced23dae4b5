/* SPDX-License-Identifier: MIT */
/*
 * programfile.h: what a program's file tells, besides names: which allocators are linked into it,
 * and its suppressions for LeakSanitizer.
 *
 * Called by analyze/model/uncounted, analyze/filter/suppressions, collect/allocators and cli. Any
 * thread.
 */
#ifndef ANALYZE_SYMBOL_PROGRAMFILE_H
#define ANALYZE_SYMBOL_PROGRAMFILE_H

#include "analyze/symbol/symbolmodule.h"

#include <libelf.h>
#include <stdbool.h>

/* ---- Allocators, by symbols and by texts ---- */

struct allocators {
    const char *name;         /* "jemalloc"; NULL: none that is known */
    const char *another_name; /* "mi_malloc": called as such, besides malloc; NULL: none */
    bool defines_another;     /* and it is in this file */
    bool is_by_text;          /* the name stands in its constants alone: it has no symbols */
    bool defines_malloc;      /* some function of the program is called malloc */
    bool exports_malloc;      /* that function can take malloc's place for other files */
    bool binds_itself;        /* and the file's own calls are bound to it (-Bsymbolic) */
    bool defines_new;         /* it has an operator new ... */
    bool exports_new;         /* ... which other files may be bound to */
    bool calls_malloc;        /* it wants malloc, calloc, ... or operator new from a library */
    bool wraps_malloc;    /* its malloc looks for the next one by name: a program's ends in ours */
    bool is_libc;         /* it is the C library */
    unsigned machine;     /* e_machine of the file */
    bool holds_runtime;   /* MemTrace is linked into it statically, and leads its malloc */
    bool rules_sanitizer; /* it sets options of a sanitizer whose runtime is a library */
};

/* Which symbols are looked at; all of a large program take a moment. TEXTS: all, and names that
 * stand in constants count even if the file calls another malloc, too. */
enum allocators_symbols { ALLOCATORS_ALL, ALLOCATORS_DYNAMIC, ALLOCATORS_TEXTS };

/* 0 or -1: the file is gone, or no ELF file, or (build_id_size not 0) has another build-id. */
int programfile_allocators(const char *path, enum allocators_symbols symbols,
                           struct allocators *found);
int programfile_allocators_of(const struct symbol_module *module, enum allocators_symbols symbols,
                              struct allocators *found);
/* The same of an open file. */
void programfile_look(Elf *elf, enum allocators_symbols symbols, struct allocators *found);

/* Whether what a library allocates comes from a malloc, or operator new, of its own, which is not
 * bound to the one that all others call. One that only calls the next malloc is none of these: what
 * comes behind a library comes behind ours, too. */
bool programfile_has_own_malloc(const struct allocators *library);

/* ---- Suppressions: what a program's function __lsan_default_suppressions() returns, read from its
 * file, without running it. Where the program defines that function, all constant texts of the file
 * are taken that are nothing but such lists (lines "leak:PATTERN", comments, empty lines). One that
 * is put together at run time is not seen; --suppressions names a file then. The program must be on
 * this machine, unchanged ---- */

/* The caller frees the text. NULL: there is none, or it cannot be found. debug_folders may be NULL
 * (as for the symbolizer). */
char *programfile_suppressions(const struct symbol_module *module, const char *debug_folders);

#endif
