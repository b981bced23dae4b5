/* SPDX-License-Identifier: MIT */
/*
 * attach.h: what `memtrace attach` and the runtime agree on. The command starts a thread of this
 * name in the program, which loads the library and calls one of the functions.
 */
#ifndef MEMTRACE_ATTACH_H
#define MEMTRACE_ATTACH_H

#include <stdint.h>

#define MEMTRACE_ATTACH_THREAD "memtrace-attach"
#define MEMTRACE_ATTACH_ENTRY  "memtrace_attach"
#define MEMTRACE_DETACH_ENTRY  "memtrace_detach"
#define MEMTRACE_CENSUS_ENTRY  "memtrace_census"
#define MEMTRACE_FOLLOW_ENTRY  "memtrace_follow"
/* The name of the copy of the program that is looked at then. */
#define MEMTRACE_CENSUS_COPY "memtrace-census"

/* Among the settings: where in the program its filters lie (memtrace/seccomp.h), as a number. */
#define MEMTRACE_ATTACH_FILTERS "FILTERS="
/* Among the settings: who attached writes the profile, from outside of the program's namespaces. */
#define MEMTRACE_ATTACH_OUTSIDE "OUTSIDE=1"
/* The name of the library where it is a file of memory. */
#define MEMTRACE_ATTACH_FILE "libmemtrace.so"

enum memtrace_attach_result {
    MEMTRACE_ATTACH_DONE = 0,
    MEMTRACE_ATTACH_THERE = 1,    /* it counts already */
    MEMTRACE_ATTACH_OVER = 2,     /* it is not counted any more, or the program ends */
    MEMTRACE_ATTACH_FAILED = 3,   /* no region, no memory */
    MEMTRACE_ATTACH_NOT_OURS = 4, /* to detach: the library was there from the start */
    MEMTRACE_ATTACH_BUSY = 5, /* another command is at it, or a thread has not run since the last */
    MEMTRACE_ATTACH_OTHER_MALLOC = 6, /* for a census: it is not glibc's */
    MEMTRACE_ATTACH_NO_COPY = 7       /* no process or no memory for it */
};

/* What the C library says of the heap just before it is copied (mallinfo2). */
struct memtrace_census {
    uint64_t arena_bytes; /* given out in arenas, and what lies in the caches of threads */
    uint64_t mapped_bytes, mapped_count;
};

/* settings: "NAME=value" strings, an empty one at the end. */
int memtrace_attach(const char *settings);
int memtrace_detach(const char *unused);
/* Fills in a struct memtrace_census there, and makes a copy of the program that does nothing. Comes
 * back when that was killed, or has ended after a minute. */
int memtrace_census(char *settings);
/* Makes ready what the plan says that lies where struct memtrace_led says (memtrace/allocators.h).
 */
int memtrace_follow(const char *unused);

#endif
