/* SPDX-License-Identifier: MIT */
/* runtime.h: the one runtime of this process: its parts, and how it comes up and goes down, which
 * process/runtime.c does: it knows all floors above this one. */
#ifndef RUNTIME_ENTRY_RUNTIME_H
#define RUNTIME_ENTRY_RUNTIME_H

#include "runtime/base/clock.h"
#include "runtime/heap/ledger.h"
#include "runtime/heap/shadow_heap.h"
#include "runtime/record/recorder.h"
#include "runtime/record/region.h"
#include "runtime/stack/walk.h"

enum runtime_state {
    RUNTIME_ASLEEP = 0,   /* nothing has happened yet */
    RUNTIME_STARTING = 1, /* some thread is setting it up */
    RUNTIME_READY = 2,
    RUNTIME_OFF = 3, /* switched off, or could not be set up; for good */
};

/* In an order by which what a forked child surely writes is beside each other: each page of it is
 * copied then. Large tables begin or end what they are of. */
struct runtime {
    struct settings settings;
    struct context_tree tree;
    uint32_t state;
    uintptr_t gate;           /* what a thread's gate becomes when it leaves the runtime */
    uint64_t sample_bytes;    /* while on: one allocation in so many bytes is counted; 0: each is */
    uint32_t counted_exactly; /* there may be blocks that were */
    uint32_t *alive;          /* in a page wiped on fork: 0 in a child that has no region yet */
    struct space space;
    struct walk_world world;
    struct shadow_heap heap;
    struct shadow_heap pools;
    struct shadow_heap foreign; /* blocks of allocators that stand in for malloc (pool.h) */
    const volatile clock_word *clock_word; /* what its threads watch: clock.h */
    uint32_t unknown_context;              /* no backtrace: MEMTRACE_FRAME_UNKNOWN */
    struct memtrace_malloc malloc_by;      /* for the header of each region */
    /* What the runtime itself does where no collector is: */
    int has_companion; /* one was started */
    uint32_t snapshots_done;
    uint64_t snapshots_answered;
    uint64_t churn_printed;
    uint64_t churn_sampled;
    struct region region;
    struct rules rules;
    struct ledger ledger;
    struct modules modules;
    struct recorder recorder;
};

extern HIDDEN struct runtime runtime;
/* The program was running, and `memtrace attach` came, ever: runtime_forget() leaves it. */
extern HIDDEN uint32_t runtime_attached;

/* It is up in this very process: not before a forked child's first event, nor past the end. */
INLINE int runtime_is_ready(void) {
    return LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY && *runtime.alive != 0;
}

INLINE int runtime_is_attached(void) {
    return LOAD_RELAXED(&runtime_attached) != 0;
}

/* Sets the process up, or the forked child anew. 1: ready, 0: not (yet). */
int runtime_ensure(void);
/* Sets up a program that runs, by these settings alone: one that was never set up, or was
 * forgotten. 1: ready, 0: not. */
int runtime_attach(char **settings);
/* After its end, and while no thread is inside: gives up all that it made, as if it had never been
 * set up. Nobody but runtime_attach() sets it up again. */
void runtime_forget(void);
/* Once there is a region: who prints, finishes, records. */
void runtime_find_helpers(void);
/* Writes into the region's header where the tables lie that are outside of it. */
void runtime_tell_tables(void);
/* The last act: writes the profile and the summary, or leaves them to the collector. Only the
 * process that owns the region does anything. */
void runtime_finish(enum memtrace_state state);
/* Before exec of `path` (NULL: not known before). 1: noted, to be taken back if exec fails. */
int runtime_before_exec(const char *path);
void runtime_after_failed_exec(void);
/* One top-N to stderr or the log, as module+offset lines. */
void runtime_print_top(void);
/* Now and then, from a thread's clock: samples and prints what is due, where no collector does. */
void runtime_periodic(uint64_t now_ns);

#endif
