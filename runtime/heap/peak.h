/* SPDX-License-Identifier: MIT */
/*
 * peak.h: where is the process against its maximum?
 *
 * A thread's live bytes are what its record says: allocated - freed (negative where it freed what
 * others allocated). `told` of them are in header.live_bytes. The hot path is one compare: a thread
 * whose live bytes have left [low, high] tells anew, in the *_slow functions.
 *
 * PEAK_ALONE, one thread: exact. At the maximum both are INT64_MAX: growing goes on unseen, any
 * free leaves it and starts a new epoch, so that cells keep what they held. Below it low is
 * INT64_MIN, and high where the maximum was.
 *
 * PEAK_SHARED, several threads: low, high = told -+ step. The step is at most max(64 KiB, maximum /
 * 1024), and a sixteenth of that for the first 64 times, and again once in 1,024 events: what a few
 * threads do seldom is told at once. header.peak_error_bytes: what was told and twice the steps of
 * all threads, at any time, less the maximum.
 *
 * The first thread is alone. It is told before it makes another (peak_become_shared). A thread that
 * was made some other way finds it alone when it joins: it tells on its behalf, from then on at
 * each of its own slow events, until the first thread has had an event and does so itself.
 *
 * A light child (entry/child.h), which has one thread, also wants to know the most that it held of
 * blocks of its own, and to have it told where others read it, at the latest by the free after it.
 * Blocks that it was born with count as freed where it frees them: without those its live bytes are
 * more by what they had. PEAK_ALONE, and low and high are set so that this maximum is not missed,
 * either.
 *
 * A signal handler may interrupt the hot path anywhere and allocate or free itself: the record's
 * totals change by single instructions, and what is compared is what they left.
 */
#ifndef RUNTIME_HEAP_PEAK_H
#define RUNTIME_HEAP_PEAK_H

#include "memtrace/format.h"
#include "runtime/machine/machine.h"

enum peak_mode { PEAK_SHARED, PEAK_ALONE };

struct peak_share { /* one a thread */
    int64_t low, high;
    int64_t told;
    const struct memtrace_counts *counts; /* the thread's */
    int64_t step;                         /* PEAK_SHARED: as the limits were set; 0: not yet */
    uint64_t paid_events;                 /* events up to which credit was given */
    uint32_t credit;                      /* how often it may still tell finely */
    uint32_t mode;                        /* enum peak_mode */
};

/* A thread comes, and goes on where its record stands; goes. */
void peak_join(struct peak_share *share, struct memtrace_header *header,
               const struct memtrace_counts *counts, enum peak_mode mode);
void peak_leave(struct peak_share *share, struct memtrace_header *header);
/* The calling thread, whose share it is, will not be alone any more. */
void peak_become_shared(struct peak_share *share, struct memtrace_header *header);
/* Who has no share of its own, but events: the first thread is not alone. */
void peak_end_alone(struct memtrace_header *header);
/* Tells what the thread holds back. */
void peak_flush(struct peak_share *share, struct memtrace_header *header);
/* In a forked child: nobody is there yet. */
void peak_fork(void);
/* The thread's counts go on at another place. */
void peak_move(struct peak_share *share, const struct memtrace_counts *counts);

/* From here on *maximum is the most that is held of own blocks, until peak_end_own(). The calling
 * thread is alone. */
void peak_begin_own(struct peak_share *share, struct memtrace_header *header, uint64_t *maximum);
void peak_end_own(void);
/* Around what a free of inherited blocks of `size` bytes adds to the header, before it is counted
 * as any other. Without peak_begin_own() they do nothing. */
void peak_before_inherited(struct peak_share *share, struct memtrace_header *header);
void peak_after_inherited(struct peak_share *share, struct memtrace_header *header, uint64_t size);

void peak_grow_slow(struct peak_share *share, struct memtrace_header *header, int64_t live);
void peak_shrink_slow(struct peak_share *share, struct memtrace_header *header, int64_t live,
                      uint64_t size);

INLINE int64_t peak_live(const struct memtrace_counts *counts) {
    return (int64_t)(counts->alloc_bytes - counts->free_bytes);
}

/* Whether the thread, which has `live` after an allocation or a free, has to tell. */
INLINE int peak_is_passed(const struct peak_share *share, int64_t live) {
    return machine_is_greater(live, &share->high);
}

INLINE int peak_is_left(const struct peak_share *share, int64_t live) {
    return machine_is_less(live, &share->low);
}

/* An allocation, after which the thread has `live`; after its cell has changed or before, both are
 * right: at the maximum every cell's present value counts. */
INLINE void peak_grow(struct peak_share *share, struct memtrace_header *header, int64_t live) {
    if (UNLIKELY(peak_is_passed(share, live))) {
        peak_grow_slow(share, header, live);
    }
}

/* A free of `size`, after which the thread has `live`; before its cell changes, since the epoch it
 * may start is of the state before. */
INLINE void peak_shrink(struct peak_share *share, struct memtrace_header *header, int64_t live,
                        uint64_t size) {
    if (UNLIKELY(peak_is_left(share, live))) {
        peak_shrink_slow(share, header, live, size);
    }
}

#endif
