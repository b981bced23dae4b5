/* SPDX-License-Identifier: MIT */
/*
 * region.h: the profile region: where it lies, its header, its tables of threads and pools.
 */
#ifndef RUNTIME_RECORD_REGION_H
#define RUNTIME_RECORD_REGION_H

#include "memtrace/events.h"
#include "memtrace/format.h"
#include "runtime/base/compiler.h"
#include "runtime/base/space.h"
#include "runtime/stack/walk.h"

enum {
    REGION_THREAD_LIMIT = (1 << MEMTRACE_THREAD_BITS) - 1, /* no id is higher or this */
    REGION_THREADS_FRESH = 27 * 128, /* past it the ids of threads that ended are used again */
    REGION_THREAD_PLACES = 1 << 16,  /* of threads that are alive at one time */
    REGION_THREADS_PER_LEAF = 128,
    REGION_POOL_LIMIT = 1000,
    REGION_FREES_PER_LEAF = 256
};

enum { SETTINGS_SIGNALS = 65 };

/* What each signal does: enum signal_action of process/signals.h. */
struct settings_signals {
    uint8_t action[SETTINGS_SIGNALS];
};

/* What the environment asked for. Strings are copied: the environment may change. */
struct settings {
    uint64_t every_ns;
    uint64_t churn_bytes;
    uint64_t context_limit;
    uint64_t log_size_bytes; /* 0: the log grows */
    uint32_t top;
    uint32_t summary;
    uint32_t log_level;     /* enum log_level */
    uint32_t collector_pid; /* `memtrace run`, our parent */
    uint32_t inject;        /* calls of other allocators are led to us */
    uint32_t zero;          /* allocations are filled with zeros */
    uint32_t starts_off;    /* nothing is counted until memtrace_start() or a signal */
    uint32_t children;      /* enum memtrace_children: who is profiled besides us */
    uint64_t run;           /* which run we belong to; never 0 once settings are read */
    uint64_t run_namespace; /* where collector_pid is a pid; 0: no run was named */
    struct memtrace_limit limit;
    struct memtrace_owner owner;
    uint32_t file_mode; /* of files that we make; 0: 0600 */
    struct settings_signals signals;
    enum memtrace_stacks stacks;
    enum walk_unwind unwind; /* how stacks are walked */
    char output[1024];       /* a pattern */
    char log[1024];
    char modules[256];                   /* whose allocations are recorded; empty: all */
    char folder[192];                    /* where regions go; empty: the usual places */
    char alloc[4096];                    /* functions that allocate, one a line */
    char command[512];                   /* the memtrace command; empty: beside the library */
    struct memtrace_recording recording; /* as the header gets it; path: a pattern */
};

/* Records that wait for another thread, linked by `next`: places in the table, 0: none. */
struct region_ended {
    uint32_t first, last;
};

struct region {
    struct space *space;
    struct region_ended ended, ended_past_ids;
    uint32_t past_ids;                  /* places past the ids that were given out */
    struct trylock thread_lock;         /* of both lists */
    struct memtrace_pool *pools;        /* place 0 is under the segment header; NULL: no name yet */
    struct memtrace_timeline *timeline; /* NULL: in a light child */
    struct trylock lock;                /* of pools and timeline */
    const struct settings *settings;
    uint64_t birth_zero_ns; /* the header's, which forked children go on with */
    struct memtrace_thread_record *thread_leaf[REGION_THREAD_PLACES / REGION_THREADS_PER_LEAF];
};

/* What a forked child keeps of its parent's segments. */
struct region_heirs {
    int (*keep)(void *argument, const struct memtrace_segment *segment);
    void *argument;
};

/* Of files that we make: command lines are in them, so nobody else reads them unless the user says
 * so. */
int region_file_mode(void);

/* Makes the region of this process: a file in a folder of ours, mapped, its header filled. 0, or -1
 * after one line on stderr. */
int region_create(struct region *region, struct space *space, const struct settings *settings);
/* In a forked child whose space is private: header and threads anew, the pools are its parent's, it
 * has no timeline yet. 0, or -1: no memory. */
int region_begin_light(struct region *region);
/* And later: a file of its own, mapped over the private space at the same addresses, with all that
 * it counted. 0, or -1 after one line: all is as before. */
int region_grow(struct region *region, const struct region_heirs *heirs);
/* Fills in names and times, after which the region is there for others; `output` gets .PID in a
 * forked child whose pattern has no %p. */
void region_describe(struct region *region, int forked);

/* The part of the header that is about the recording. */
INLINE struct memtrace_recording *region_recording(struct memtrace_header *header) {
    return (struct memtrace_recording *)(void *)header->recording;
}

/* A record for the calling thread, which may go on where others ended; NULL: none can be had. */
struct memtrace_thread_record *region_add_thread(struct region *region, uint32_t column);
void region_end_thread(struct region *region, struct memtrace_thread_record *record);
/* By its place: of those that have an id, that. NULL: there is none. */
struct memtrace_thread_record *region_thread(struct region *region, uint32_t place);
/* The first place behind `place` where there is a record; 0: none. */
uint32_t region_next_thread(struct region *region, uint32_t place);

/* Notes that the thread of this record freed `count` blocks of thread `owner`. `leaves`: the
 * caller's, one for 256 owners. */
void region_note_foreign_free(struct region *region, struct memtrace_foreign_frees **leaves,
                              struct memtrace_thread_record *record, uint32_t owner, uint64_t size,
                              uint64_t count);

/* Calls back for each owner whose blocks `thread` freed. Returns how many there were. */
long region_visit_foreign_frees(struct region *region, uint32_t thread,
                                void (*visit)(uint32_t owner, uint64_t blocks, uint64_t bytes,
                                              void *argument),
                                void *argument);

/* The number of a pool name, made if new; -1: too many, or new in a light child, whose table is its
 * ancestor's. */
int region_pool(struct region *region, const char *name);

/* Sums the threads' totals: alloc_count, alloc_bytes and live_bytes of a sample. */
void region_totals(struct region *region, struct memtrace_point *sum);
/* Notes a sample, with the resident set: by the runtime itself where there is no collector. */
void region_sample(struct region *region, const struct memtrace_point *sample);

#endif
