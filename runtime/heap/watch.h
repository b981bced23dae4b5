/* SPDX-License-Identifier: MIT */
/*
 * watch.h: what one thread allocates between two moments, exactly: for expectations of tests.
 *
 * Called by entry/thread_watch.c, with the thread inside an event. Belongs to one thread. Watches
 * lie in each other, and end in the reverse order; one that was left by a longjmp ends with the one
 * around it. Those that ask for leaks keep the addresses that were allocated since the outermost of
 * them began, in a table that drops what was freed meanwhile before it grows.
 *
 * Invariants:
 *   item[i].start_sequence <= item[i + 1].start_sequence <= sequence, for i + 1 < depth
 *   at most one entry of the table has an address: that of its latest allocation
 *   used * 4 <= capacity * 3
 */
#ifndef RUNTIME_HEAP_WATCH_H
#define RUNTIME_HEAP_WATCH_H

#include "runtime/heap/shadow_heap.h"

enum { WATCH_DEPTH = 32 };

struct watch_limits {
    uint64_t most_allocations;
    uint64_t most_bytes;
    int leaks; /* what stays alive is looked for, too */
};

struct watch {
    uint32_t number; /* unique in the thread */
    struct watch_limits limits;
    uint64_t start_sequence;
    uint64_t allocations;
    uint64_t bytes;
    uint32_t over_context; /* of the first allocation beyond a limit; 0: none */
};

/* An allocation whose address is kept. */
struct watch_entry {
    uintptr_t address; /* 0: free place */
    uint64_t sequence;
    uint32_t context;
};

/* All of a thread; all zero is ready. */
struct watches {
    struct watch item[WATCH_DEPTH];
    uint32_t depth;
    uint32_t leaks; /* of item[0, depth): how many ask for them */
    uint32_t last_number;
    uint32_t thread;   /* MemTrace's id */
    uint64_t sequence; /* allocations seen */
    uint64_t lost;     /* addresses that there was no memory for */
    struct watch_entry *entries;
    size_t capacity; /* 0 or a power of two */
    size_t used;
};

struct watch_result {
    uint64_t allocations;
    uint64_t bytes;
    uint64_t leaked_blocks; /* of them: alive yet, and not taken over by another thread's realloc */
    uint64_t leaked_bytes;
    uint32_t over_context;
    uint32_t leaked_context; /* of the first that leaked */
};

/* The number of the new watch. 0: too many lie in each other. */
uint32_t watch_begin(struct watches *watches, const struct watch_limits *limits);
/* 0, or -1: there is no such watch (any more), or not all of it is known. */
int watch_end(struct watches *watches, const struct shadow_heap *heap, uint32_t number,
              struct watch_result *result);
/* The thread allocated this block, which `heap` knows already. */
void watch_alloc(struct watches *watches, const struct shadow_heap *heap,
                 const struct heap_block *block);
/* Forgets all watches, and gives their memory back. */
void watch_reset(struct watches *watches);

#endif
