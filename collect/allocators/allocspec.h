/* SPDX-License-Identifier: MIT */
/*
 * allocspec.h: which functions of a program allocate, as users say it (--alloc;
 * docs/allocators.md):
 *
 *     [OBJECT!]SYMBOL(size=N[*M]|inner,align=K,old=J,ptr=P)=alloc|zalloc|realloc|free|reset[:POOL]
 *
 * or the name of a ready-made set (allocsets.h), "auto", or @FILE, which has one a line.
 *
 * Called by allocators.c, by cli, and by the compiler passes (instrument/allocators), so it needs
 * no library. Any thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCSPEC_H
#define COLLECT_ALLOCATORS_ALLOCSPEC_H

#include "analyze/base/error.h"
#include "memtrace/signature.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct allocspec {
    char *text;      /* as it was written */
    char *object;    /* only in objects of this name; NULL: wherever it is */
    char *symbol;    /* mangled, or as programmers write it */
    bool is_pattern; /* with * and ?, on names as programmers write them */
    struct memtrace_allocator_signature signature;
    bool is_outer; /* its block is one of another function that it calls, with that one's size */
    bool in_program_only; /* libraries are not looked at */
    bool in_library_only;
    bool is_inner; /* in libraries that define malloc only where it leads to none of its set */
    char pool[MEMTRACE_SITE_NAME]; /* empty, and no heap: the function's own name */
    bool is_exact;                 /* the symbol is as the file has it */
    bool is_automatic;             /* libraries matter that have an allocator for themselves */
    const char *set;               /* the ready-made set that it is from; NULL: the user's own */
};

/* What a function does, by enum memtrace_allocator_kind: "alloc". */
extern const char *const allocspec_kinds[MEMTRACE_ALLOCATOR_KINDS];

/* All zero is empty. */
struct allocspecs {
    struct allocspec *items;
    size_t count, room;
    bool has_auto; /* known allocators in the program itself are wanted, too */
};

/* Adds what one specification says: one function, those of a set or of @FILE. 0, or -1: the error
 * is one line that says what, where in it, and what to do. */
int allocspec_add(struct allocspecs *specs, const char *text, struct error *error);
/* Adds a whole set, by its place in allocsets[]. */
int allocspec_add_set(struct allocspecs *specs, size_t set, struct error *error);
void allocspec_free(struct allocspecs *specs);

/* Writes a specification, or those in @FILE without comments and empty lines, one a line, if all
 * are right. 0, or -1 with the first error. */
int allocspec_expand(const char *text, FILE *out, struct error *error);

#endif
