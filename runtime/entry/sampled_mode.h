/* SPDX-License-Identifier: MIT */
/*
 * sampled_mode.h: mode sampled: one allocation in so many bytes is walked, kept and counted for the
 * others (record/sampling.h says which, format.h what it counts for).
 *
 * A thread is in this mode while its gate is GATE_SAMPLED, and malloc() of any size leaves the fast
 * half by its first test then (real.small_limit is 0): so the exact path has no test for it. All
 * that is not picked pays sampled_mode_skip() and, when it is freed, event_skips_free(). Picked
 * blocks lie in a table of their own (heap/sampled_heap.h): whatever the mode is when a block is
 * freed, it is found where it was put when it was allocated, and counted as it was then.
 *
 * Called by the interposed functions. The thread is the calling one.
 */
#ifndef RUNTIME_ENTRY_SAMPLED_MODE_H
#define RUNTIME_ENTRY_SAMPLED_MODE_H

#include "runtime/entry/thread.h"
#include "runtime/heap/sampled_heap.h"
#include "runtime/machine/machine.h"

/* Takes a request off the thread's credit, before it is handed on: 1: it is not picked, and that is
 * all about it. 0: it may be, nothing has changed. A block of no bytes is long 1, so that it can be
 * picked, too. */
INLINE int sampled_mode_take_credit(struct thread *thread, uint64_t size) {
    uint64_t length = size + 1;
    if (LIKELY(!counter_take(&thread->credit, length))) {
        return 1;
    }
    counter_add(&thread->credit, length);
    if ((int64_t)thread->credit < 0) { /* a handler allocated meanwhile, by a credit without end */
        thread->credit = 0;
    }
    return 0;
}

/* The same where it is not known whether the calling thread is in mode sampled. 1: it is, and the
 * request is only to be handed on. */
INLINE int sampled_mode_skip(uint64_t size) {
    struct thread *thread = thread_self;
    return thread->gate == GATE_SAMPLED && sampled_mode_take_credit(thread, size);
}

/* The block at `address` was allocated by a thread whose gate is GATE_SAMPLED. It is done with the
 * event. */
void sampled_mode_alloc(struct thread *thread, const void *address, uint64_t size,
                        struct frame caller);

/* In an event: the block at `address`, of which the shadow heap knows nothing, is freed. */
void sampled_mode_free(struct thread *thread, uintptr_t address);
/* The two halves of it, for realloc: a block that was taken out is counted as freed. */
void sampled_mode_count_freed(struct thread *thread, uintptr_t address,
                              const struct memtrace_sampled_block *block);

#endif
