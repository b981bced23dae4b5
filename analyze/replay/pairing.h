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

struct pairing;

struct pairing *pairing_new(void);          /* NULL: out of memory */
void pairing_free(struct pairing *pairing); /* NULL is allowed */

/* A block begins. 0; 1: its end was met before, and is *end: the block does not live; -1: out of
 * memory. */
int pairing_add(struct pairing *pairing, struct event_block name, const struct pairing_block *block,
                struct pairing_end *end);

/* A block ends. 1: here is what it was; 0: it is not known. */
int pairing_take(struct pairing *pairing, struct event_block name, struct pairing_block *block);

/* An end whose block is not known: it waits for its allocation, which another thread's stream may
 * still bring. 0, or -1: out of memory. */
int pairing_wait(struct pairing *pairing, struct event_block name, struct pairing_end end);

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

#endif
