/* SPDX-License-Identifier: MIT */
/*
 * trail.h: paths that were walked before. What a walk reads determines where it comes: rules depend
 * on return addresses alone, and each return slot follows from the frame before it. So if all words
 * that a walk read are as they were, it would come along the same path to the same frame, and if
 * that frame's context is what it was, to the same context. A trail ends at
 *  - a guard, which vouches for all that is older,
 *  - a frame word, whose function has not ended either, or
 *  - a remembered frame, whose older ones are then compared (no guard stands there).
 * The owner of a trail is a thread's walker; walk.c keeps and follows them.
 */
#ifndef RUNTIME_STACK_TRAIL_H
#define RUNTIME_STACK_TRAIL_H

#include "runtime/stack/step.h"

enum {
    TRAIL_MOST = 18,
    TRAIL_WAY_BITS = 3,
    TRAIL_WAYS = 1 << TRAIL_WAY_BITS,
    TRAIL_SET_BITS = 6,
    TRAIL_SETS = 1 << TRAIL_SET_BITS
};
/* After so many misses in a row, trails are looked for only one time in so many. */
enum { TRAIL_PATIENCE = 16, TRAIL_SELDOM = 8, TRAIL_SEEN = 8 };

enum trail_end { TRAIL_GUARD, TRAIL_WORD, TRAIL_REMEMBERED };

struct walk_trail {
    struct frame from; /* pc 0: unused */
    uintptr_t sum;     /* of the words that were read: one xor the other */
    /* Where it ends: a frame word; or the slot of a remembered frame. */
    uintptr_t end_at;
    uintptr_t end_fp;
    struct machine_sp end_sp;
    uint32_t end_context; /* the frame word holds it, or the remembered frame has it */
    uint32_t end_index;   /* the remembered frame's */
    uint32_t *word;       /* the first function's frame word; NULL: none */
    uint32_t parent;      /* what that is to hold */
    uint32_t context;     /* where the trail leads */
    uint8_t count;
    uint8_t needs_fp; /* from.fp was used */
    uint8_t end;      /* enum trail_end */
    uint8_t gap;      /* remembered frames compared beyond the one where the walk ended */
    /* Where the words lie, in words from the first slot on, and their low halves. Addresses that
     * differ do so there, hardly ever in their high halves alone, and those are in the sum. */
    uint16_t at[TRAIL_MOST];
    uint32_t low[TRAIL_MOST];
};

/* Those that start at like places. */
struct trail_set {
    uint32_t missed;           /* walks since one of them was taken */
    uint32_t chance;           /* a number of a pseudo-random sequence */
    uint32_t kept;             /* trails, ever */
    uint32_t seen[TRAIL_SEEN]; /* contexts that walks came to */
};

/* The sets lie apart from their trails: what allocates along few paths touches little memory. */
struct trails {
    struct trail_set set[TRAIL_SETS];
    struct walk_trail way[TRAIL_SETS][TRAIL_WAYS];
};

INLINE size_t trail_set_of(const struct frame *from) {
    return ((from->pc ^ (uint64_t)from->slot << 24) * UINT64_C(0x9e3779b97f4a7c15)) >>
           (64 - TRAIL_SET_BITS);
}

/* Whether this trail starts here and nothing on it has changed. All its words lie above the present
 * frame, on the same stack. */
INLINE int trail_holds(const struct walk_trail *trail, const struct frame *from) {
    uintptr_t sum = trail->sum;
    uint32_t count = trail->count;
    if (trail->from.pc != from->pc || trail->from.slot != from->slot ||
        !machine_same_sp(trail->from.sp, from->sp) ||
        (trail->needs_fp && trail->from.fp != from->fp)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        uintptr_t word = stack_load(from->slot + trail->at[i] * sizeof(uintptr_t));
        if ((uint32_t)word != trail->low[i]) {
            return 0;
        }
        sum ^= word;
    }
    return sum == 0;
}

/* Not this time: where paths hardly ever come again, looking for them would cost more than it
 * saves.
 */
INLINE int trail_is_seldom(const struct trail_set *set) {
    return set->kept == 0 ||
           (UNLIKELY(set->missed >= TRAIL_PATIENCE) && set->missed % TRAIL_SELDOM != 0);
}

/* A walk that no trail saved came to this context. Whether to keep one for the next time: the path
 * has come twice by now. Most paths that come but once cost no more than this. */
INLINE int trail_is_worth(struct trail_set *set, uint32_t context) {
    uint32_t *seen = &set->seen[context % TRAIL_SEEN];
    int has_come = *seen == context;
    *seen = context;
    set->missed++;
    return has_come;
}

/* A place for the trail from here, in place of an older one. */
INLINE struct walk_trail *trail_begin(struct trails *trails, const struct frame *from) {
    size_t index = trail_set_of(from);
    struct trail_set *set = &trails->set[index];
    struct walk_trail *trail;
    /* By chance: paths often come in turns, and the oldest is the one that comes next. */
    set->chance = set->chance * 1664525 + 1013904223;
    trail = &trails->way[index][set->chance >> (32 - TRAIL_WAY_BITS)];
    set->kept++;
    trail->from.pc = 0; /* until it is whole, whatever a handler does meanwhile */
    SIGNAL_FENCE();
    trail->from.slot = from->slot;
    trail->from.fp = from->fp;
    trail->from.sp = from->sp;
    trail->needs_fp = 0;
    trail->gap = 0;
    trail->count = 0;
    trail->sum = 0;
    trail->word = NULL;
    return trail;
}

/* The word at `address` was read on the way. 0: the path is too long to be kept. */
INLINE int trail_add(struct walk_trail *trail, uintptr_t address) {
    uint32_t i = trail->count;
    uintptr_t at = (address - trail->from.slot) / sizeof(uintptr_t);
    uintptr_t word = stack_load(address);
    if (i == TRAIL_MOST || at > UINT16_MAX) {
        return 0;
    }
    trail->at[i] = (uint16_t)at;
    trail->low[i] = (uint32_t)word;
    trail->sum ^= word;
    trail->count = (uint8_t)(i + 1);
    return 1;
}

#endif
