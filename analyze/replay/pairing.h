/* SPDX-License-Identifier: MIT */
/*
 * pairing.h: which blocks live while a recording is replayed. A free names its block by the thread
 * id that allocated it and a number (memtrace/events.h), so it finds the one allocation it ends.
 *
 * Called by analyze/window/wholemodel. Belongs to one thread. Memory grows with the blocks that
 * live, not with events: each thread id has a ring of its newest numbers, which most blocks never
 * outlive; those that do move to a hash table. A ring is at least a quarter full of live blocks
 * before it doubles.
 */
#ifndef ANALYZE_REPLAY_PAIRING_H
#define ANALYZE_REPLAY_PAIRING_H

#include "analyze/base/hotpath.h"
#include "analyze/read/event.h"

/* What the end of a block must know of its beginning. */
struct pairing_block {
    uint64_t size;
    uint64_t weight;  /* see struct event */
    uint32_t context; /* below 2^31 */
    uint32_t tick;
};

/* A free that was met before its allocation: by whom, when. */
struct pairing_end {
    uint32_t thread;
    uint32_t tick;
    uint64_t time_ns;
};

enum { PAIRING_THREADS = 1 << MEMTRACE_THREAD_BITS, PAIRING_NUMBER_BITS = 48 };
#define PAIRING_LIVE (1u << 31) /* in a slot's context */

/* The numbers [next - size, next) have a slot each; what was pushed out of it is in the map. */
struct pairing_ring {
    struct pairing_block *slots;
    uint64_t next;
    uint32_t size; /* a power of two; 0: none yet */
    uint32_t live;
};

struct pairing {
    struct pairing_ring rings[PAIRING_THREADS];
    uint64_t last_waiting[PAIRING_THREADS]; /* the highest number that ever waited */
    struct pairing_maps *maps;              /* what is in no ring */
};

struct pairing *pairing_new(void); /* of the present job */
/* Frees it early. NULL is allowed. */
void pairing_free(struct pairing *pairing);

HOT_INLINE struct pairing_block *pairing_slot(const struct pairing_ring *ring, uint64_t number) {
    return &ring->slots[number & (ring->size - 1)];
}

HOT_INLINE bool pairing_is_name(struct event_block name) {
    return name.number - 1 < (UINT64_C(1) << PAIRING_NUMBER_BITS) - 1 &&
           name.thread < PAIRING_THREADS;
}

HOT_INLINE bool pairing_is_inside(const struct pairing_ring *ring, uint64_t number) {
    return ring->next - number - 1 < ring->size;
}

/* pairing_add() and pairing_take() of a block that is not where nearly all are. */
RARELY_DONE int pairing_add_any(struct pairing *pairing, struct event_block name,
                                struct pairing_block block, struct pairing_end *end);
int pairing_take_outlived(struct pairing *pairing, struct event_block name,
                          struct pairing_block *block);

/* A block begins. 0; 1: its end was met before, and is *end: the block does not live. */
HOT_INLINE int pairing_add(struct pairing *pairing, struct event_block name,
                           const struct pairing_block *block, struct pairing_end *end) {
    struct pairing_ring *ring = &pairing->rings[name.thread % PAIRING_THREADS];
    struct pairing_block *slot;
    /* The next number of its ring, in a slot that is free: as nearly always. */
    if (!pairing_is_name(name) || name.number != ring->next || ring->size == 0 ||
        name.number <= pairing->last_waiting[name.thread] ||
        (slot = pairing_slot(ring, name.number))->context & PAIRING_LIVE) {
        return pairing_add_any(pairing, name, *block, end);
    }
    *slot = *block;
    slot->context |= PAIRING_LIVE;
    ring->live++;
    ring->next++;
    return 0;
}

/* A block ends. 1: here is what it was; 0: it is not known. */
HOT_INLINE int pairing_take(struct pairing *pairing, struct event_block name,
                            struct pairing_block *block) {
    struct pairing_ring *ring = &pairing->rings[name.thread % PAIRING_THREADS];
    struct pairing_block *slot;
    /* No ring has a number that cannot be a name's as a live one. */
    if (name.thread >= PAIRING_THREADS || !pairing_is_inside(ring, name.number) ||
        !((slot = pairing_slot(ring, name.number))->context & PAIRING_LIVE)) {
        struct pairing_block outlived;
        int is_known = pairing_take_outlived(pairing, name, &outlived);
        if (is_known) {
            *block = outlived; /* a copy: this one need not lie in memory */
        }
        return is_known;
    }
    *block = *slot;
    block->context &= ~PAIRING_LIVE;
    slot->context = 0;
    ring->live--;
    return 1;
}

/* The block will be asked for soon: fetches its slot, which is nearly always far from the last. */
HOT_INLINE void pairing_prefetch(const struct pairing *pairing, struct event_block name) {
    const struct pairing_ring *ring = &pairing->rings[name.thread % PAIRING_THREADS];
    if (ring->size != 0) {
        __builtin_prefetch(pairing_slot(ring, name.number), 1);
    }
}

/* An end whose block is not known: it waits for its allocation, which another thread's stream may
 * still bring. */
void pairing_wait(struct pairing *pairing, struct event_block name, struct pairing_end end);

/* Everything that lives, and every end that waits; each visitor stops it by what is not 0, which it
 * returns. */
struct pairing_visitor {
    int (*lives)(void *context, struct event_block name, const struct pairing_block *block);
    int (*waits)(void *context, struct event_block name, const struct pairing_end *end);
    void *context;
};
int pairing_each(const struct pairing *pairing, const struct pairing_visitor *visitor);
uint64_t pairing_living(const struct pairing *pairing);

/* Ends that wait: at the end of a file, frees of blocks that are not in it. */
uint64_t pairing_waiting(const struct pairing *pairing);

/*
 * ---- blockmap: a hash table from a block's name to what is known of it: open addressing, each
 * chain closed up when an item leaves, so that it never holds anything but live items. It is cut
 * into parts that grow each for itself, large ones by a quarter: a recording may have a hundred
 * million live blocks, and no moment needs twice their memory. Also of collect/transform/importer.
 * Belongs to a job. Start from {0}. ----
 */

struct blockmap_item {
    uint64_t key; /* 0: empty */
    struct pairing_block block;
};

struct blockmap_part {
    struct blockmap_item *items;
    uint32_t capacity; /* at least 4/3 of count */
    uint32_t count;
};

enum { BLOCKMAP_PARTS = 256 };

struct blockmap {
    struct blockmap_part parts[BLOCKMAP_PARTS];
    size_t count;
};

/* Frees it early. */
void blockmap_free(struct blockmap *map);
/* Puts it in, in place of one with the same key. key != 0. */
void blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block);
/* Takes it out. 1 or 0: not there. */
int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block);
/* All items, in no order; the visitor stops it by what is not 0, which it returns. */
int blockmap_each(const struct blockmap *map,
                  int (*visit)(void *context, const struct blockmap_item *item), void *context);

#endif
