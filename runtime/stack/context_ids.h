/* SPDX-License-Identifier: MIT */
/*
 * context_ids.h: ids for new nodes of the context tree, above their parents', from leaves of their
 * kind, which are made as they are needed. Used by context.c alone; any thread, any time.
 */
#ifndef RUNTIME_STACK_CONTEXT_IDS_H
#define RUNTIME_STACK_CONTEXT_IDS_H

#include "runtime/stack/context.h"

enum { MOST_ASIDE = 64 }; /* leaf indices */

/* Leaf indices kept for inner leaves: `next` in the low half, the end in the high one. */
static uint64_t aside_range(uint32_t next, uint32_t end) {
    return (uint64_t)end << 32 | next;
}

/* The next index kept aside; 0: none, or those that are left would be below the parent's and are
 * given up (0 itself is never kept: the first leaf is taken by a child of the root). */
static uint32_t take_aside(struct context_tree *tree, uint32_t parent) {
    uint64_t range = LOAD_RELAXED(&tree->aside);
    uint64_t rest;
    uint32_t next;
    do {
        next = (uint32_t)range;
        if (range == 0) {
            return 0;
        }
        rest = next <= parent / MEMTRACE_LEAF_ITEMS || next + 1 == range >> 32 ? 0 : range + 1;
    } while (!__atomic_compare_exchange_n(&tree->aside, &range, rest, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return next > parent / MEMTRACE_LEAF_ITEMS ? next : 0;
}

/* How many inner leaves the next charged one is to serve. Where most nodes are inner ones it must
 * be many, or it is left nearly empty; twice as many as the last one served, found in a few steps.
 */
static uint32_t inner_leaves_to_serve(struct context_tree *tree) {
    uint32_t served = __atomic_exchange_n(&tree->inner_leaves, 0, __ATOMIC_RELAXED);
    return served == 0 ? 1 : served < MOST_ASIDE / 2 ? 2 * served : MOST_ASIDE;
}

/* The index of a new leaf. One for charged contexts keeps others aside, below it, for the next
 * inner leaves: else each new inner leaf, whose nodes' children must have higher ids, would make
 * the charged leaf of the moment useless for them, nearly empty as it may be. */
static uint32_t take_leaf_index(struct context_tree *tree, enum context_kind kind,
                                uint32_t parent) {
    uint64_t none = 0;
    uint32_t index;
    uint32_t kept;
    if (kind == CONTEXT_INNER) {
        __atomic_fetch_add(&tree->inner_leaves, 1, __ATOMIC_RELAXED);
        index = take_aside(tree, parent);
        return index != 0 ? index : __atomic_fetch_add(&tree->leaves, 1, __ATOMIC_RELAXED);
    }
    if (LOAD_RELAXED(&tree->aside) != 0 || LOAD_RELAXED(&tree->leaves) == 0) {
        return __atomic_fetch_add(&tree->leaves, 1, __ATOMIC_RELAXED);
    }
    kept = inner_leaves_to_serve(tree);
    index = __atomic_fetch_add(&tree->leaves, kept + 1, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&tree->aside, &none, aside_range(index, index + kept), 0,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return index + kept;
}

/* Whether the nodes of this leaf can have children in lists. */
static int has_links(struct context_tree *tree, uint32_t index) {
    const uint64_t leaf_bytes = MEMTRACE_LEAF_ITEMS * sizeof *tree->link;
    return tree->link == NULL || room_reach(&tree->links, (index + 1) * leaf_bytes) == 0;
}

/* Starts a leaf of its own for this kind of ids and gives out its first. 0: no room. */
static COLD uint32_t start_leaf(struct context_tree *tree, enum context_kind kind, uint32_t seen,
                                uint32_t parent) {
    uint32_t index = take_leaf_index(tree, kind, parent);
    uint32_t id = index * MEMTRACE_LEAF_ITEMS + MEMTRACE_FIRST_CONTEXT;
    if (index >= CONTEXT_LEAVES || !has_links(tree, index) ||
        space_leaf(tree->space, &tree->leaf[index], MEMTRACE_SEGMENT_NODES, index, sizeof(uint64_t),
                   MEMTRACE_LEAF_ITEMS) == NULL) {
        /* Full: do not try again each time. */
        STORE_RELAXED(&tree->limit, LOAD_RELAXED(&tree->taken));
        return 0;
    }
    /* If another thread was faster its leaf is used, ours for this one id. */
    __atomic_compare_exchange_n(&tree->next.id[kind], &seen, id + 1, 0, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
    return id;
}

struct context_run {
    uint32_t first;
    uint32_t count;
};

/* The number in the header may be a few behind while threads make nodes at once. */
static inline void count_taken(struct context_tree *tree, uint32_t count) {
    uint32_t taken = __atomic_add_fetch(&tree->taken, count, __ATOMIC_RELAXED);
    STORE_RELAXED(&tree->space->header->context_count, taken);
}

/* Up to `most` ids in a row above `parent`, whose leaf is mapped. count 0: the limit is reached, or
 * there is no room. */
static inline struct context_run take_ids(struct context_tree *tree, enum context_kind kind,
                                          uint32_t parent, uint32_t most) {
    struct context_run run = {0, 1};
    uint32_t taken = LOAD_RELAXED(&tree->taken);
    uint32_t limit = LOAD_RELAXED(&tree->limit);
    if (taken >= limit) {
        return (struct context_run){0, 0};
    }
    most = most <= limit - taken ? most : limit - taken;
    /* Pairs with the release in start_leaf(): the leaf is there. */
    run.first = LOAD_ACQUIRE(&tree->next.id[kind]);
    do {
        uint32_t place = run.first % MEMTRACE_LEAF_ITEMS;
        if (run.first <= parent || place == 0) {
            run.first = start_leaf(tree, kind, run.first, parent);
            run.count = run.first != 0;
            break;
        }
        run.count = most <= MEMTRACE_LEAF_ITEMS - place ? most : MEMTRACE_LEAF_ITEMS - place;
    } while (!__atomic_compare_exchange_n(&tree->next.id[kind], &run.first, run.first + run.count,
                                          1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    if (run.count != 0) {
        count_taken(tree, run.count);
    }
    return run;
}

/* Both kinds for a path, from leaves that are begun: `inner` ids in a row above `parent`, and a
 * charged one above these. 0, or -1: they are to be taken one kind after the other. */
static inline int take_path(struct context_tree *tree, uint32_t parent, struct context_run *inner,
                            struct context_run *charged) {
    union context_next next;
    union context_next after;
    if (LOAD_RELAXED(&tree->taken) + inner->count >= LOAD_RELAXED(&tree->limit)) {
        return -1;
    }
    next.both = LOAD_ACQUIRE(&tree->next.both);
    do {
        uint32_t first = next.id[CONTEXT_INNER];
        uint32_t place = first % MEMTRACE_LEAF_ITEMS;
        after = next;
        after.id[CONTEXT_INNER] += inner->count;
        after.id[CONTEXT_CHARGED]++;
        if (first <= parent || place == 0 || place + inner->count > MEMTRACE_LEAF_ITEMS ||
            next.id[CONTEXT_CHARGED] <= first + inner->count - 1 ||
            next.id[CONTEXT_CHARGED] % MEMTRACE_LEAF_ITEMS == 0) {
            return -1;
        }
    } while (!__atomic_compare_exchange_n(&tree->next.both, &next.both, after.both, 1,
                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    count_taken(tree, inner->count + 1);
    inner->first = next.id[CONTEXT_INNER];
    *charged = (struct context_run){next.id[CONTEXT_CHARGED], 1};
    return 0;
}

#endif
