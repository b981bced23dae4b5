/* SPDX-License-Identifier: MIT */
/*
 * accounts.h: the costs of contexts, threads and the whole process in a slice of a recording, while
 * its events are replayed: what the runtime's ledger, thread records and peak are for a profile.
 *
 * Called by analyze/replay/pass, one event at a time. Belongs to one thread. When a slice is cut
 * off, everything begins again at 0; only what was touched is looked at then.
 *
 * Counts are in units of 1 / ACCOUNTS_ONE: a sampled allocation stands for a number of allocations
 * that need not be whole. Peak: the process is at its maximum or below it; leaving the maximum
 * begins an epoch, and a cell keeps what it held at its first change in an epoch.
 */
#ifndef ANALYZE_REPLAY_ACCOUNTS_H
#define ANALYZE_REPLAY_ACCOUNTS_H

#include "analyze/base/hotpath.h"
#include "analyze/model/model.h"
#include "analyze/model/wrap.h"
#include "analyze/profile/load.h"
#include "analyze/replay/pairing.h"
#include "analyze/replay/slice.h"

enum { ACCOUNTS_THREADS = 1 << MEMTRACE_THREAD_BITS };

/* One line of the processor's cache. */
struct accounts_cell {
    uint64_t alloc_bytes, alloc_units;
    uint64_t free_bytes, free_units;
    uint64_t temporary;
    uint64_t saved;     /* alloc_bytes - free_bytes at the maximum */
    uint32_t epoch;     /* 0: not touched yet */
    uint32_t lifetimes; /* number of its buckets, from 1; 0: none yet */
    uint8_t class;      /* 0: not looked up yet; else enum model_class + 1 */
};

struct accounts_variance {
    double total, live;
};

struct accounts_thread {
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
};

struct accounts {
    const struct model_node *nodes;
    size_t node_count;
    struct accounts_cell *cells;         /* node_count */
    struct accounts_variance *variances; /* node_count; NULL: nothing was sampled */
    uint32_t *touched;                   /* contexts of this slice; room for node_count */
    size_t touched_count;
    uint64_t (*lifetimes)[MEMTRACE_LIFETIME_BUCKETS];
    size_t lifetime_count;
    size_t lifetime_capacity;
    struct accounts_thread threads[ACCOUNTS_THREADS];
    struct foreign foreign; /* blocks in units */
    int64_t live;           /* since the slice began */
    int64_t maximum;        /* >= 0 */
    uint64_t now_ns;        /* of the present event: its maker sets it */
    uint64_t maximum_ns;
    uint32_t epoch;
    bool at_maximum;
    bool is_sampled;
    uint64_t alloc_units, alloc_bytes; /* of the heap, over all slices */
    struct accounts_crest {            /* the moment with most live bytes since the last look */
        int64_t live;
        uint64_t time_ns;
        uint64_t alloc_units, alloc_bytes; /* 0: there was never more than when it began */
    } crest;
    struct slice_variance variance;
};

/* They belong to the present job. */
void accounts_start(struct accounts *accounts, const struct model_node *nodes, size_t node_count);
/* Frees them early. */
void accounts_end(struct accounts *accounts);

/* How many bytes and allocations a block stands for. */
HOT_INLINE uint64_t accounts_bytes(const struct pairing_block *block) {
    return block->weight != 0 ? block->weight : block->size;
}
/* Rarely done functions take blocks by value, so that the others need not lie in memory. */
RARELY_DONE uint64_t accounts_sampled_units(struct pairing_block block);
HOT_INLINE uint64_t accounts_units(const struct pairing_block *block) {
    return block->weight != 0 ? accounts_sampled_units(*block) : ACCOUNTS_ONE;
}

RARELY_DONE enum model_class accounts_look_up(struct accounts *accounts, uint32_t context);
HOT_INLINE enum model_class accounts_class(struct accounts *accounts, uint32_t context) {
    uint8_t class = accounts->cells[context].class;
    return class != 0 ? (enum model_class)(class - 1) : accounts_look_up(accounts, context);
}

/* What a sampled block adds to the variance of a sum of bytes: it was taken with probability
 * size / weight, so weight (weight - size). */
static inline double accounts_variance_of(uint64_t size, uint64_t weight) {
    return weight > size ? (double)weight * ((double)weight - (double)size) : 0;
}

/* ---- The peak ---- */

HOT_INLINE void accounts_keep_peak(struct accounts *accounts, struct accounts_cell *cell) {
    if (cell->epoch != accounts->epoch) {
        if (cell->epoch == 0) {
            accounts->touched[accounts->touched_count++] = (uint32_t)(cell - accounts->cells);
        }
        cell->epoch = accounts->epoch;
        cell->saved = cell->alloc_bytes - cell->free_bytes;
    }
}

HOT_INLINE void accounts_grow(struct accounts *accounts, uint64_t bytes) {
    accounts->live = (int64_t)((uint64_t)accounts->live + bytes);
    if (accounts->live > accounts->maximum) {
        accounts->maximum = accounts->live;
        accounts->maximum_ns = accounts->now_ns;
        accounts->variance.maximum = accounts->variance.live;
        accounts->at_maximum = true;
    }
    if (accounts->live > accounts->crest.live) {
        accounts->crest = (struct accounts_crest){accounts->live, accounts->now_ns,
                                                  accounts->alloc_units, accounts->alloc_bytes};
    }
}

/* Before the cell changes: an epoch that begins is of the state before. */
HOT_INLINE void accounts_shrink(struct accounts *accounts, uint64_t bytes) {
    accounts->live = (int64_t)((uint64_t)accounts->live - bytes);
    if (accounts->at_maximum && bytes != 0) {
        accounts->at_maximum = false;
        accounts->epoch++;
    }
}

/* ---- Blocks ---- */

/* What sampled blocks do to variances; new buckets for a cell; a block that another thread frees.
 */
RARELY_DONE void accounts_vary(struct accounts *accounts, struct pairing_block block, double sign);
RARELY_DONE void accounts_add_buckets(struct accounts *accounts, struct accounts_cell *cell);
void accounts_count_foreign(struct accounts *accounts, uint32_t freer, uint32_t owner,
                            uint64_t units, uint64_t bytes);

HOT_INLINE void accounts_add_lifetime(struct accounts *accounts, struct accounts_cell *cell,
                                      uint32_t ticks, uint64_t units) {
    if (cell->lifetimes == 0) {
        accounts_add_buckets(accounts, cell);
    }
    accounts->lifetimes[cell->lifetimes - 1][contexts_bucket(ticks)] += units;
}

/* A block begins. `thread`: who allocated it; it is not counted there if `inherited`. Returns by
 * how much the heap's live bytes grew. */
HOT_INLINE int64_t accounts_alloc(struct accounts *accounts, const struct pairing_block *block,
                                  uint32_t thread, bool inherited) {
    struct accounts_cell *cell = &accounts->cells[block->context];
    uint64_t bytes = accounts_bytes(block);
    uint64_t units = accounts_units(block);
    bool is_heap = accounts_class(accounts, block->context) == MODEL_HEAP;
    accounts_keep_peak(accounts, cell);
    cell->alloc_bytes += bytes;
    cell->alloc_units += units;
    if (!is_heap) {
        return 0;
    }
    if (block->weight != 0) {
        accounts_vary(accounts, *block, 1);
    }
    accounts->alloc_units += units;
    accounts->alloc_bytes += bytes;
    accounts_grow(accounts, bytes);
    if (!inherited && thread < ACCOUNTS_THREADS) {
        accounts->threads[thread].alloc_units += units;
        accounts->threads[thread].alloc_bytes += bytes;
    }
    return (int64_t)bytes;
}

/* It ends. Returns by how much the heap's live bytes grew: not at all, or less than 0. */
HOT_INLINE int64_t accounts_free(struct accounts *accounts, const struct pairing_block *block,
                                 uint32_t owner, const struct pairing_end *end, bool temporary) {
    struct accounts_cell *cell = &accounts->cells[block->context];
    uint64_t bytes = accounts_bytes(block);
    uint64_t units = accounts_units(block);
    bool is_heap = accounts_class(accounts, block->context) == MODEL_HEAP;
    if (is_heap) {
        accounts_shrink(accounts, bytes);
    }
    accounts_keep_peak(accounts, cell);
    cell->free_bytes += bytes;
    cell->free_units += units;
    accounts_add_lifetime(accounts, cell, end->tick > block->tick ? end->tick - block->tick : 0,
                          units);
    if (!is_heap) {
        return 0;
    }
    cell->temporary += temporary ? units : 0;
    if (block->weight != 0) {
        accounts_vary(accounts, *block, -1);
    }
    if (end->thread < ACCOUNTS_THREADS) {
        accounts->threads[end->thread].free_units += units;
        accounts->threads[end->thread].free_bytes += bytes;
        if (end->thread != owner) {
            accounts_count_foreign(accounts, end->thread, owner, units, bytes);
        }
    }
    return wrap_subtract(0, (int64_t)bytes);
}

/* ---- Everything else ---- */

/* The heap from before an attach, of which single blocks are not known: so many bytes are there, or
 * this thread freed a block of it. As in a profile (MEMTRACE_FRAME_BEFORE) it counts as allocated
 * at once, and once more with each block that goes; contexts_settle_before() takes that back. Both
 * return by how much the heap's live bytes grew. */
int64_t accounts_before(struct accounts *accounts, uint32_t context, uint64_t bytes);
int64_t accounts_before_freed(struct accounts *accounts, uint32_t context, uint64_t bytes,
                              uint32_t thread);

/* Address space of a context of class MODEL_MAPPING. */
void accounts_map(struct accounts *accounts, uint32_t context, uint64_t bytes);
void accounts_unmap(struct accounts *accounts, uint32_t context, uint64_t bytes, bool is_last);

/* Blocks that lived so shortly that the recording left out both ends. */
void accounts_culled(struct accounts *accounts, const struct memtrace_culled *culled);

/* Looks at the crest: what it was, and the next one begins. */
static inline struct accounts_crest accounts_take_crest(struct accounts *accounts) {
    struct accounts_crest crest = accounts->crest;
    accounts->crest = (struct accounts_crest){.live = accounts->live};
    return crest;
}

/* What was added since the last cut, as a slice (ticks, events and error are the caller's). */
void accounts_cut(struct accounts *accounts, struct slice *slice);

#endif
