/* SPDX-License-Identifier: MIT */
/*
 * peak.h: where is the process against its maximum?
 *
 * One thread alone: exact. `room` is maximum - live; an allocation that makes it negative raises
 * the maximum, a free that leaves the maximum starts a new epoch, so that cells keep what they
 * held. Several threads: each keeps a private delta and hands it in when it has grown by max(64
 * KiB, maximum / 1024); the maximum is then short by at most that times the threads.
 *
 * The hot path is one subtraction and one compare; all else is in the *_slow functions. A signal
 * handler may interrupt the hot path anywhere and take or give itself: `room` changes by single
 * instructions, and what is compared is what they left.
 *   single: room = maximum - live >= 0; ceiling = 0 at the maximum, INT64_MAX below it
 *   multi:  room = step - delta, ceiling = 2 * step
 */
#ifndef RUNTIME_HEAP_PEAK_H
#define RUNTIME_HEAP_PEAK_H

#include "memtrace/format.h"
#include "runtime/base/machine.h"

struct peak_share { /* one a thread */
    int64_t room;
    int64_t ceiling;
    int64_t step; /* 0: this thread is alone */
};

void peak_join(struct peak_share *share, struct memtrace_header *header, int alone);
/* The first thread learns that it is no longer alone. */
void peak_become_shared(struct peak_share *share, struct memtrace_header *header);
/* Hands in what the thread holds back. */
void peak_flush(struct peak_share *share, struct memtrace_header *header);
void peak_leave(struct peak_share *share, struct memtrace_header *header);

void peak_grow_slow(struct peak_share *share, struct memtrace_header *header);
void peak_shrink_slow(struct peak_share *share, struct memtrace_header *header, int64_t size);

/* The two halves of the hot path. 1: the *_slow function is to be called, for a free after
 * peak_take() took back what was given. */
INLINE int peak_take(struct peak_share *share, uint64_t size) {
    return counter_take(&share->room, (int64_t)size);
}

INLINE int peak_give(struct peak_share *share, uint64_t size) {
    counter_add((uint64_t *)&share->room, size);
    SIGNAL_FENCE();
    return LOAD_RELAXED(&share->room) > LOAD_RELAXED(&share->ceiling);
}

/* An allocation; after its cell has changed or before, both are right: at the maximum every cell's
 * present value counts. */
INLINE void peak_grow(struct peak_share *share, struct memtrace_header *header, uint64_t size) {
    if (UNLIKELY(peak_take(share, size))) {
        peak_grow_slow(share, header);
    }
}

/* A free; before its cell changes, since the epoch it may start is of the state before. */
INLINE void peak_shrink(struct peak_share *share, struct memtrace_header *header, uint64_t size) {
    if (UNLIKELY(peak_give(share, size))) {
        peak_take(share, size);
        peak_shrink_slow(share, header, (int64_t)size);
    }
}

#endif
