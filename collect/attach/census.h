/* SPDX-License-Identifier: MIT */
/*
 * census.h: what the heap of a program that runs holds, by size of blocks and by C++ class. It is
 * read from a copy of the process, which the program's library has made and which does nothing.
 *
 * Called by cli/attach. Belongs to one thread.
 */
#ifndef COLLECT_ATTACH_CENSUS_H
#define COLLECT_ATTACH_CENSUS_H

#include "analyze/base/error.h"
#include "collect/attach/attachtarget.h"
#include "memtrace/attach.h"

enum { CENSUS_SIZES = 48 };

struct arenas {
    unsigned version; /* of glibc: 36 for 2.36 */
    size_t count;     /* arenas */
    size_t caches;    /* of threads, that hold something */
    uint64_t top_bytes;
    uint64_t mapped_count, mapped_bytes; /* found */
};

struct census_sum {
    uint64_t blocks, bytes;
};

/* Blocks whose first word leads to this class's virtual table. */
struct census_class {
    char *name; /* demangled */
    struct census_sum sum;
};

struct census {
    struct memtrace_census told; /* by the C library */
    struct arenas arenas;
    struct census_sum used, free, fast, cached, mapped; /* mapped: of those used */
    struct census_sum sizes[CENSUS_SIZES]; /* [i]: used ones of at most census_most(i) bytes */
    struct census_class *classes;          /* by falling bytes */
    size_t class_count;
};

uint64_t census_most(int size);

/* The copy's process id, among the processes here; 0: it is not there yet. It ends with this
 * command, however that ends. */
pid_t census_hold_copy(pid_t pid);
void census_end_copy(pid_t copy);
/* A copy that a killed command has left, which nobody holds, is ended. Whether there was one. */
bool census_end_left(pid_t pid);
/* 0; 1: its heap does not add up just now, perhaps since it was copied in the middle of a call of
 * malloc; or -1: it cannot be done. In both cases error says why. census_free() in each case. */
int census_take(pid_t copy, const struct memtrace_census *told, struct census *census,
                struct error *error);
void census_free(struct census *census);

#endif
