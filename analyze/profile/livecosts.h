/* SPDX-License-Identifier: MIT */
/*
 * livecosts.h: what the call paths of a running program cost, for who looks again and again: nodes
 * are read once, counters each time, into the same memory. A model (model.h) is a value that is
 * made anew each time; of a program with 100,000 contexts this takes a tenth of the time.
 *
 * Called by top. One thread. All zero is empty and ready; livecosts_free() at the end.
 */
#ifndef ANALYZE_PROFILE_LIVECOSTS_H
#define ANALYZE_PROFILE_LIVECOSTS_H

#include "analyze/model/model.h"

struct livecosts_counts {
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t maximum_bytes; /* held when the process was at its maximum */
    uint64_t total_bytes;
    uint64_t allocations;
    uint64_t temporary;
};

/* Bit of `columns` that stands for all columns from this one on. */
enum { LIVECOSTS_OTHERS = 63 };

struct livecosts_context {
    uint32_t id;
    uint32_t path; /* as in struct model_context */
    enum model_class class;
    struct livecosts_counts now;
    uint64_t total_before; /* at the look before this one */
    uint64_t allocations_before;
    uint64_t live_marked; /* bytes, at livecosts_mark() */
    uint64_t columns;     /* a bit for each that allocated in it, and LIVECOSTS_OTHERS;
                             0: not known */
};

struct livecosts {
    struct model_node *nodes; /* by id; [0] is the root */
    size_t node_count;
    size_t node_room;
    struct livecosts_context *contexts; /* in the order in which they were seen first */
    size_t count;
    size_t room;
    uint32_t *places; /* by node: in contexts, from 1 on; 0: it has no counts */
    size_t place_room;
    unsigned char *whole; /* by leaf of the tree: each of its nodes was read */
    size_t whole_room;
    struct livecosts_counts totals; /* of heap contexts */
    bool is_marked;                 /* livecosts_mark() was called */
    uint32_t only; /* a column + 1: what its thread alone allocated, less what it freed; 0: all */
    struct job_memory *memory;
};

/* Looks at a region after profile_refresh(). 0, or -1: out of memory, and it is empty. */
int livecosts_look(struct livecosts *costs, const struct profile *profile);
/* The same of a model, whose contexts are those of the look before and others. */
int livecosts_take(struct livecosts *costs, const struct model *model);

/* Another column from the next look on, which has none before it. */
void livecosts_only(struct livecosts *costs, uint32_t only);
/* The last look is that before the next one, and the mark. */
void livecosts_begin(struct livecosts *costs);

/* How long the blocks lived that were freed of a context, which has this place; called once for
 * each of which any are known. */
typedef void livecosts_take_lifetimes(void *context, size_t place,
                                      const uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]);
/* 0, or -1: out of memory. */
int livecosts_lifetimes(const struct livecosts *costs, const struct profile *profile,
                        livecosts_take_lifetimes *take, void *context);

/* live_marked is what each holds now; of contexts that come later, 0. */
void livecosts_mark(struct livecosts *costs);

void livecosts_free(struct livecosts *costs);

#endif
