/* SPDX-License-Identifier: MIT */
/*
 * lives.h: every block of a recording from its birth to its death, one by one. What the sums of a
 * model cannot tell (this block's size, address, lifetime, chain of reallocations) is told here.
 *
 * A visitor of the replay (pass.h), which pairs ends with beginnings. Called by filter, blocks,
 * query, export and collect. One thread at a time; a second one reads ahead inside the call. Memory
 * grows with the blocks that live, not with events.
 */
#ifndef ANALYZE_REPLAY_LIVES_H
#define ANALYZE_REPLAY_LIVES_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/scopes.h"
#include "analyze/replay/timeorder.h"

#define LIFE_ALIVE UINT64_MAX

/*
 * One block: what one allocation or reallocation made. The blocks that reallocations made of each
 * other are a chain; a block that was never reallocated is a chain of one.
 *
 * Order is that of the replay (timeorder.h): places in it tell which of two events came first where
 * times are too coarse. Places, and whatever follows from them, are the same in each pass.
 *   birth_order < death_order, birth_ns <= death_ns
 */
struct life {
    struct event_block block; /* its name */
    uint64_t address;         /* 0: not recorded */
    uint64_t size;
    uint64_t weight; /* bytes it stands for where the recording is sampled; else 0 */
    uint64_t birth_ns;
    uint64_t death_ns; /* LIFE_ALIVE: it never ended */
    uint64_t birth_order;
    uint64_t death_order; /* LIFE_ALIVE: it never ended */
    uint32_t context;     /* below model.node_count */
    uint32_t stream;      /* that allocated it */
    uint32_t death_thread;
    /* By its thread between its birth and its death; UINT32_MAX: as many or more, or it never
     * ended, or another thread freed it. */
    uint32_t allocations_between;
    struct context_id death_context; /* 0: not recorded */
    uint32_t slack;                  /* usable size - size, at most MEMTRACE_SLACK_MOST */
    uint8_t flags;                   /* MEMTRACE_ALLOC_* */
    uint8_t alignment;               /* log2 of what was asked for; 0: nothing special */
    bool is_inherited; /* a forked child was born with it: not this process's allocation; or it was
                        * there when the recording began */
    bool is_temporary; /* freed by its thread with no other heap allocation in between */
    bool is_reallocated;      /* a reallocation ended it: its chain goes on */
    uint64_t old_order;       /* birth_order of the block that it was reallocated from; 0: none */
    uint32_t chain_length;    /* blocks of its chain up to this one: 1, 2, ... */
    struct event_block chain; /* name of its chain's first block */
    uint64_t chain_order;     /* birth_order of that */
    uint64_t chain_first_size;
    uint64_t chain_birth_ns;
    uint32_t scope; /* the path of scopes it was born in; see lives_visitor.scopes */
};

/* How many bytes, and how many allocations in units of 1 / ACCOUNTS_ONE, it stands for. */
uint64_t life_bytes(const struct life *life);
uint64_t life_units(const struct life *life);

/* Who looks on, in the order of the replay. A function may be NULL; one that does not return 0 ends
 * the pass with that value. The life is the caller's until it returns. */
struct lives_visitor {
    int (*begin)(void *context, const struct life *life); /* its death is not known yet */
    /* It ended; or, when all events are over, it never did (those by birth_order). */
    int (*end)(void *context, const struct life *life);
    /* Mappings, marks, losses, the heap from before an attach (event_is_of_before). */
    int (*other)(void *context, const struct timeorder_event *event);
    void *context;
    struct scopes *scopes; /* the caller's, new; NULL: life.scope is always SCOPES_NONE */
};

/*
 * One pass over all events. `model` is that of the whole recording (model_replay), whose nodes and
 * classes it uses: a life whose context is not in the file has the last node's. Blocks that a
 * recording culled are no lives: only the model's sums have them. options may be NULL. 0, a
 * visitor's value, or REPLAY_CANCELLED where options said so (error is set). A visitor may end the
 * present job, or allocate in it.
 */
int lives_visit(struct timeorder_parts parts, const struct model *model,
                const struct lives_visitor *visitor, const struct replay_options *options,
                struct error *error);

/* ---- Chains: the ended blocks of chains of reallocations that still go on, kept until it is known
 * how they end. Of analyze/filter/selection. Memory: the lives that are kept ---- */

struct chains;

struct chains *chains_new(void);
/* Frees it early. NULL is allowed. */
void chains_free(struct chains *chains);

/* Keeps this life of its chain. */
void chains_keep(struct chains *chains, const struct life *life);

/* Takes out all that is kept of the chain that `life` belongs to, oldest first; the caller
 * releases it. NULL: nothing is kept. */
struct life *chains_take(struct chains *chains, const struct life *life, size_t *count);

#endif
