/* SPDX-License-Identifier: MIT */
/*
 * tally.h: the costs of contexts, threads and the whole process in a slice of a recording, while
 * its events are replayed: what the runtime's ledger, thread records and peak are for a profile.
 *
 * Called by analyze/model/pass, one event at a time. Belongs to one thread. When a slice is cut
 * off, everything begins again at 0; only what was touched is looked at then.
 *
 * Counts are in units of 1 / TALLY_ONE: a sampled allocation stands for a number of allocations
 * that need not be whole. Peak: the process is at its maximum or below it; leaving the maximum
 * begins an epoch, and a cell keeps what it held at its first change in an epoch.
 */
#ifndef ANALYZE_MODEL_TALLY_H
#define ANALYZE_MODEL_TALLY_H

#include "analyze/model/foreign.h"
#include "analyze/model/load.h"
#include "analyze/model/pairing.h"
#include "analyze/model/slice.h"

#define TALLY_ONE UINT64_C(65536)

/* One line of the processor's cache. */
struct tally_cell {
    uint64_t alloc_bytes, alloc_units;
    uint64_t free_bytes, free_units;
    uint64_t temporary;
    uint64_t saved;     /* alloc_bytes - free_bytes at the maximum */
    uint32_t epoch;     /* 0: not touched yet */
    uint32_t lifetimes; /* number of its buckets, from 1; 0: none yet */
    uint8_t class;      /* 0: not looked up yet; else enum model_class + 1 */
};

struct tally_variance {
    double total, live;
};

struct tally_thread {
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
};

struct tally {
    const struct model_node *nodes;
    size_t node_count;
    struct tally_cell *cells;         /* node_count */
    struct tally_variance *variances; /* node_count; NULL: nothing was sampled */
    uint32_t *touched;                /* contexts of this slice; room for node_count */
    size_t touched_count;
    uint64_t (*lifetimes)[MEMTRACE_LIFETIME_BUCKETS];
    size_t lifetime_count;
    size_t lifetime_capacity;
    struct tally_thread threads[1 << MEMTRACE_THREAD_BITS];
    struct foreign foreign; /* blocks in units */
    int64_t live;           /* since the slice began */
    int64_t maximum;        /* >= 0 */
    uint64_t now_ns;        /* of the present event: its maker sets it */
    uint64_t maximum_ns;
    uint32_t epoch;
    bool at_maximum;
    bool is_sampled;
    uint64_t alloc_units, alloc_bytes; /* of the heap, over all slices */
    struct tally_crest {               /* the moment with most live bytes since the last look */
        int64_t live;
        uint64_t time_ns;
        uint64_t alloc_units, alloc_bytes; /* 0: there was never more than when it began */
    } crest;
    struct slice_variance variance;
    bool out_of_memory;
};

/* 0, or -1: out of memory. */
int tally_start(struct tally *tally, const struct model_node *nodes, size_t node_count);
void tally_end(struct tally *tally);

/* How many bytes and allocations a block stands for. */
static inline uint64_t tally_bytes(const struct pairing_block *block) {
    return block->weight != 0 ? block->weight : block->size;
}
uint64_t tally_sampled_units(const struct pairing_block *block);
static inline uint64_t tally_units(const struct pairing_block *block) {
    return block->weight != 0 ? tally_sampled_units(block) : TALLY_ONE;
}

enum model_class tally_look_up(struct tally *tally, uint32_t context);
static inline enum model_class tally_class(struct tally *tally, uint32_t context) {
    uint8_t class = tally->cells[context].class;
    return class != 0 ? (enum model_class)(class - 1) : tally_look_up(tally, context);
}

/* A block begins. `thread`: who allocated it; it is not counted there if `inherited`. Returns by
 * how much the heap's live bytes grew. */
int64_t tally_alloc(struct tally *tally, const struct pairing_block *block, uint32_t thread,
                    bool inherited);
/* It ends. Returns by how much the heap's live bytes grew: not at all, or less than 0. */
int64_t tally_free(struct tally *tally, const struct pairing_block *block, uint32_t owner,
                   const struct pairing_end *end, bool temporary);

/* Address space of a context of class MODEL_MAPPING. */
void tally_map(struct tally *tally, uint32_t context, uint64_t bytes);
void tally_unmap(struct tally *tally, uint32_t context, uint64_t bytes, bool is_last);

/* Blocks that lived so shortly that the recording left out both ends. */
void tally_culled(struct tally *tally, const struct memtrace_culled *culled);

/* Looks at the crest: what it was, and the next one begins. */
static inline struct tally_crest tally_take_crest(struct tally *tally) {
    struct tally_crest crest = tally->crest;
    tally->crest = (struct tally_crest){.live = tally->live};
    return crest;
}

/* What was added since the last cut, as a slice (ticks, events and error are the caller's). 0, or
 * -1: out of memory. */
int tally_cut(struct tally *tally, struct slice *slice);

#endif
