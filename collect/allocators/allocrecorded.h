/* SPDX-License-Identifier: MIT */
/*
 * allocrecorded.h: what the compiler passes have written into a program, a library or an object of
 * functions that allocate: strings in a section of their own, whose fields a tabulator parts.
 *
 *     named      SPECIFICATION                                 one of ALLOCATORS, in each unit
 *     found      SPECIFICATION SYMBOL PLACE                    a function that reports
 *     proposed   SPECIFICATION SYMBOL PLACE SOURCE CALLEE      one whose attributes say it
 * allocates
 *
 * Written by instrument/allocators, read by cli/flags.c, in a job.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCRECORDED_H
#define COLLECT_ALLOCATORS_ALLOCRECORDED_H

#include <stdbool.h>
#include <stddef.h>

#define ALLOCRECORDED_SECTION ".memtrace.allocators"

#define ALLOCRECORDED_NAMED    "named"
#define ALLOCRECORDED_FOUND    "found"
#define ALLOCRECORDED_PROPOSED "proposed"

/* SOURCE: where it gets its memory: its own, malloc's by CALLEE, or what CALLEE does, which is not
 * known. */
#define ALLOCRECORDED_OWN     "own"
#define ALLOCRECORDED_MALLOC  "malloc"
#define ALLOCRECORDED_UNKNOWN "unknown"

enum { ALLOCRECORDED_FIELDS = 6 };

/* A line; what it has not is empty. */
struct allocrecorded {
    const char *field[ALLOCRECORDED_FIELDS];
};

/* Each different one, in their order. All zero is empty. */
struct allocrecords {
    struct allocrecorded *items;
    size_t count, room;
    bool is_for_linking; /* an object has no code yet: link-time optimisation */
};

/* Adds those of a file: a program, library, object, or archive of objects. They are the job's. */
void allocrecorded_read(struct allocrecords *records, const char *path);

#endif
