/* SPDX-License-Identifier: MIT */
/*
 * thread.h: what the runtime keeps of the calling thread. Seen by entry/ and instrument/ only; all
 * else takes its own part of it.
 *
 * The gate is the word that every event tests. A thread that is not set up points to a
 * read-only thread whose gate is 0; threads lie in memory that a forked child finds wiped, so there
 * the gate is 0 as well. While a thread is inside the runtime the gate holds its stack address: a
 * signal handler that allocates meanwhile sees a gate that is not open, and an address below the
 * present stack pointer on the same stack was left by a longjmp out of such a handler. Only the
 * fast halves (fast.c) leave it open, since a handler may come into them.
 */
#ifndef RUNTIME_ENTRY_THREAD_H
#define RUNTIME_ENTRY_THREAD_H

#include "runtime/base/clock.h"
#include "runtime/base/compiler.h"
#include "runtime/heap/ledger.h"
#include "runtime/heap/peak.h"
#include "runtime/heap/shadow_heap.h"
#include "runtime/record/recorder.h"
#include "runtime/record/sampling.h"
#include "runtime/stack/walk.h"

/* GATE_OPEN: every allocation is counted; GATE_SAMPLED: one in many bytes is (sampled_mode.h);
 * GATE_JOINING: as open, but the thread looks first whether it is recorded now, and was not before,
 * or the other way round (recording_switch.h). */
enum {
    GATE_NONE = 0,
    GATE_OPEN = 1,
    GATE_STOPPED = 2,
    GATE_SAMPLED = 3,
    GATE_JOINING = 4,
    GATE_ADDRESSES = 4096
};
enum { THREAD_OWNER_LEAVES = 1 << (MEMTRACE_THREAD_BITS - 8) };

struct thread {
    uintptr_t gate;
    struct ledger_column *column;
    struct memtrace_thread_record *record;
    struct memtrace_counts *counts; /* of the record; of a light child: child.h */
    struct walker *walker;
    uintptr_t last_block; /* its newest allocation: freed next, it was temporary */
    struct peak_share peak;
    uint64_t stamp;       /* id and tick, as in the record of a small block */
    uint64_t young_stamp; /* the same; none while births have high bits */
    uint64_t fast_seen;   /* clock_seen; another value while it is_special */
    uint32_t id;
    uint32_t tick; /* the clock when last looked at: ticks since the start */
    /* It is looked at again by the first event that finds another value in the word: clock.h */
    const volatile clock_word *clock_word;
    uint64_t clock_seen;
    uint64_t told_ns;    /* when it last handed in its churn */
    uint64_t churn_told; /* bytes of this thread already in header.churn_bytes */
    struct memtrace_foreign_frees *foreign[THREAD_OWNER_LEAVES];
    struct thread *next_free;
    /* Where its events are recorded; NULL: they are not. A handler that forks inside an event gets
     * its child another one: what the event still writes is the parent's. */
    struct recorder_stream *stream;
    uint32_t is_late; /* shared by all threads that said goodbye: to be given back */
    uint32_t
        is_special; /* is_late, is_watched, is_noted or it has a stream: events end in a call */
    uint32_t is_watched; /* somebody waits to hear of its allocations: thread_watch.c */
    uint32_t is_noted;   /* child_note() is to be called: child.h */
    uint64_t credit;     /* sampled_mode.h: so many bytes may pass before anything is looked at */
    struct sampling sampling; /* where the next point lies, behind the credit */
    int64_t last_position;    /* how far it was when last_block was picked */
    uint32_t generation;      /* of the recorder, to which `stream` belongs */
};

extern HIDDEN THREAD_LOCAL struct thread *thread_self;
extern HIDDEN THREAD_LOCAL struct shadow_stack *thread_shadow; /* for the hooks; NULL: not yet */

/* The slow half of every event: sets up the process or the thread, or says why not. `address`: the
 * caller's place on the stack. NULL: the event is not counted. */
struct thread *thread_wake(uintptr_t address);
/* The same for a free, which is counted while stopped. */
struct thread *thread_wake_for_free(uintptr_t address);

/* The shadow stack of this thread, made if need be; NULL: none. For the hooks. */
struct shadow_stack *thread_shadow_slow(void);

INLINE struct thread *thread_get(uintptr_t address) {
    struct thread *thread = thread_self;
    return LIKELY(thread->gate == GATE_OPEN) ? thread : thread_wake(address);
}

INLINE struct thread *thread_get_for_free(uintptr_t address) {
    struct thread *thread = thread_self;
    return LIKELY(thread->gate == GATE_OPEN) ? thread : thread_wake_for_free(address);
}

/* Whether what the thread allocates is counted, all of it or a sample. From outside of events. */
INLINE int thread_counts(const struct thread *thread) {
    return thread->gate == GATE_OPEN || thread->gate == GATE_SAMPLED ||
           thread->gate == GATE_JOINING;
}

/* The same, and it is all of it. */
INLINE int thread_counts_all(const struct thread *thread) {
    return thread->gate == GATE_OPEN || thread->gate == GATE_JOINING;
}

/* Whether the calling thread, which a handler interrupted, is in an event. */
INLINE int thread_is_inside(void) {
    return thread_self->gate >= GATE_ADDRESSES;
}

/* What makes a known thread special has changed. */
INLINE void thread_settle_special(struct thread *thread) {
    thread->is_special =
        thread->is_late || thread->stream != NULL || thread->is_watched || thread->is_noted;
    thread->fast_seen = ~*thread->clock_word;
}

/* seen: what the word is while the clock need not be looked at. */
INLINE void thread_set_clock(struct thread *thread, uint64_t seen) {
    thread->clock_seen = seen;
    thread->fast_seen = thread->is_special ? ~*thread->clock_word : seen;
}

INLINE void thread_set_tick(struct thread *thread, uint32_t tick) {
    thread->tick = tick;
    thread->stamp = (uint64_t)thread->id << MEMTRACE_BLOCK_THREAD_SHIFT |
                    (uint64_t)tick << MEMTRACE_BLOCK_BIRTH_SHIFT;
    thread->young_stamp = heap_has_high_births(tick) ? 0 : thread->stamp;
}

void thread_done_late(void);

/* The calling thread, by its struct, gets a stream, or has none any more, where a recording began
 * or ended since it last looked. Not inside an event that was begun before. */
void thread_settle(struct thread *thread);
/* The calling thread is known from here on, NULL: it cannot be. For forked children. */
struct thread *thread_join(void);
/* At the end: what the calling thread holds back of the peak and of the churn is handed in. */
void thread_hand_in(void);

/* After the event. */
INLINE void thread_done(struct thread *thread) {
    if (UNLIKELY(thread->is_late)) {
        thread_done_late();
    }
}

/* The calling thread may be another C library's, which would take what we leave with a thread for
 * its own: then it is counted with those that said goodbye. */
void thread_note_foreign_library(void);

void thread_init_process(void); /* once, before the first thread */
void thread_init_child(void);   /* a forked child: all others are gone */
/* No thread is known any more: each comes anew. None is inside. */
void thread_forget_all(void);
void thread_stop_self(void);
void thread_start_self(void);
/* Every thread is unknown again, and no walker is there: none is inside. */
void thread_wipe_all(void);
/* Whether another thread is in the slow half of an event, or was when it left by a longjmp. */
int thread_is_any_inside(void);
/* Every thread finds its gate stopped, but one that is inside just now: it does when it leaves. */
void thread_stop_all(void);
/* The same of those that are open: they find it GATE_JOINING. */
void thread_join_all(void);
/* The calling thread is about to make another. */
void thread_expect_company(void);
/* `caller` calls fork. 1: in a signal handler that interrupted this thread inside the runtime.
 * thread_after_fork is called then: a child gets its region at once, since it will go on inside. */
int thread_before_fork(struct frame caller);
void thread_after_fork(int is_child);
int thread_forked_inside(void);
/* Set around code of ours that may allocate through the program's allocator: not counted. */
void thread_pass_through(int on);

/* --- watches (thread_watch.c) ----------------------------------------------------------------- */

/* What the thread, which is_watched, allocates. Inside the event. */
void thread_watch_alloc(struct thread *thread, const void *address, uint64_t size,
                        uint32_t context);
/* The calling thread ends. */
void thread_watch_end_thread(void);

/* --- its clock (tick.c) -------------------------------------------------------------------------
 *
 * Each event comes by here (event.h); the clock itself is looked at by the first event of a thread
 * after the kernel's timer interrupt (base/clock.h). So what a thread notes as the time is at most
 * as old as the time between two interrupts, however long it did nothing before. */

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
