/* SPDX-License-Identifier: MIT */
/*
 * mergetables.h: the tables of a recording or profile that is made of several processes': one
 * tree of contexts, one list of modules, pools and threads, and how each process's ids become
 * those.
 *
 * Called by collect/mergeprofiles and collect/transform/merge. One thread, in a job, to which their
 * memory belongs.
 *
 * A module is the same in two processes if its build-id (or, without, its path) is; where it was
 * loaded makes no difference: its addresses become those of the process that had it first. So
 * contexts with the same path are one. Threads stay apart, also those with the same id.
 */
#ifndef COLLECT_MERGETABLES_H
#define COLLECT_MERGETABLES_H

#include "analyze/base/numbermap.h"
#include "analyze/model/model.h"
#include "memtrace/recording.h"

enum { MERGETABLES_THREADS = 1 << MEMTRACE_THREAD_BITS };

struct mergetables {
    struct memtrace_module *modules; /* [0] is none; id: index */
    size_t module_count;
    size_t module_room;
    struct memtrace_recording_node *nodes; /* id: index; frame 0: no such id */
    size_t node_count;
    size_t node_room;
    struct numbermap children; /* hash of parent and frame -> its id */
    struct memtrace_recording_pool *pools;
    size_t pool_count;
    size_t pool_room;
    struct memtrace_thread_record *threads; /* in the order of their ids */
    size_t thread_count;
    size_t thread_room;
    uint32_t thread_ids; /* given out so far; 0 and 1 at the start */
};

/* One process's ids -> those of the tables. */
struct mergesource {
    uint64_t shift_ns;
    uint32_t *contexts;
    size_t context_count;
    uint32_t *modules;
    uint64_t *bases; /* by module: what is added to its addresses */
    size_t module_count;
    uint32_t *pools;
    size_t pool_count;
    uint32_t threads[MERGETABLES_THREADS]; /* 0: not given yet */
};

/* Adds the process of this model to the tables (all zero at first), whose times are shift_ns later
 * in theirs. */
void mergetables_add(struct mergetables *tables, const struct model *model, uint64_t shift_ns,
                     struct mergesource *source);
/* Frees early what is not needed any more. */
void mergesource_release(struct mergesource *source);

/* Makes the first process's header that of all: without what is not known of all. Then each other
 * one's is added: who else allocates, errors and losses. */
void mergetables_begin_header(struct memtrace_header *header);
void mergetables_add_header(struct memtrace_header *header, const struct memtrace_header *other);
/* Puts into a header how many there are of what the tables hold. */
void mergetables_count(const struct mergetables *tables, struct memtrace_header *header);

/* What becomes of a frame, a context or a thread. A thread's is 0 if there are too many. */
uint64_t mergesource_frame(const struct mergesource *source, uint64_t frame);
uint32_t mergesource_context(const struct mergesource *source, uint32_t context);
uint32_t mergesource_thread(struct mergesource *source, struct mergetables *tables,
                            uint32_t thread);

#endif
