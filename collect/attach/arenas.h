/* SPDX-License-Identifier: MIT */
/*
 * arenas.h: all chunks of a glibc heap, read from outside of a process that stands still.
 *
 * Nothing is guessed: the layout is that of the versions that are named here, the main arena is
 * found by what its bins must say, and each arena's chunks must lead exactly to its top. What does
 * not fit is an error. Called by collect/attach/census. Belongs to one thread.
 */
#ifndef COLLECT_ATTACH_ARENAS_H
#define COLLECT_ATTACH_ARENAS_H

#include "analyze/base/error.h"
#include "collect/attach/attachtarget.h"
#include "memtrace/attach.h"

enum arenas_state {
    ARENAS_USED,   /* the program has it */
    ARENAS_FREE,   /* in a bin */
    ARENAS_FAST,   /* in a fast bin: free, but not joined with its neighbours */
    ARENAS_CACHED, /* in the cache of a thread: free for that */
};

struct arenas_chunk {
    uint64_t address; /* of the program's part */
    uint64_t bytes;   /* of that */
    uint64_t first;   /* its first word */
    enum arenas_state state;
    bool is_mapped; /* a mapping of its own */
};

struct arenas {
    unsigned version; /* of glibc: 36 for 2.36 */
    size_t count;     /* arenas */
    size_t caches;    /* of threads, that hold something */
    uint64_t top_bytes;
    uint64_t mapped_count, mapped_bytes; /* found */
};

typedef void (*arenas_visitor)(void *context, const struct arenas_chunk *chunk);

/* target: the process. 0; 1: its heap does not add up just now, perhaps since it was copied in the
 * middle of a call of malloc; or -1: it cannot be done. In both cases error says why. */
int arenas_walk(const struct attachtarget *target, const struct memtrace_census *told,
                arenas_visitor visit, void *context, struct arenas *found, struct error *error);

#endif
