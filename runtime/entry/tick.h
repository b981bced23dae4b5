/* SPDX-License-Identifier: MIT */
/*
 * tick.h: the clock of a thread, and what is done now and then, by who looks at it. Each event
 * comes by here (event.h); the clock itself is looked at by the first event of a thread after the
 * kernel's timer interrupt (base/clock.h). So what a thread notes as the time is at most as old as
 * the time between two interrupts, however long it did nothing before.
 */
#ifndef RUNTIME_ENTRY_TICK_H
#define RUNTIME_ENTRY_TICK_H

#include "runtime/entry/thread.h"

/* Whether time has passed since the thread looked at the clock. */
INLINE int tick_is_due(const struct thread *thread) {
    return *thread->clock_word != thread->clock_seen;
}

/* The tick it is by the clock itself: for outside of events. */
uint32_t tick_now(void);
/* Looks at the clock, hands in the churn, does what is periodic without a collector. Returns the
 * time since the start, in nanoseconds. */
uint64_t tick_slow(struct thread *thread);
/* The thread's next event looks at the clock; also from a handler that interrupted one. */
void tick_ask(struct thread *thread);
/* What the threads with these counts allocated and freed. */
INLINE uint64_t tick_churn(const struct memtrace_counts *counts) {
    return counts->alloc_bytes + counts->free_bytes;
}

/* Adds what of it is new to the process's total, if that is so much. */
void tick_tell_churn(struct thread *thread, uint64_t least);

#endif
