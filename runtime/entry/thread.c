/* SPDX-License-Identifier: MIT */
/* thread.c: threads coming, going, waking. See thread.h. */
#define _GNU_SOURCE
#include "runtime/entry/thread.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/latethread.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/switch.h"
#include "runtime/entry/thread_watch.h"
#include "runtime/entry/threadpool.h"
#include "runtime/entry/threadstack.h"
#include "runtime/entry/tick.h"
#include "runtime/stack/libunwind.h"

#include <errno.h>
#include <pthread.h>

static const struct thread thread_none; /* the gate is 0 */

THREAD_LOCAL struct thread *thread_self = (struct thread *)&thread_none;
THREAD_LOCAL struct shadow_stack *thread_shadow;
/* What there is of a thread also while it has no struct thread, or none any more. */
static THREAD_LOCAL struct {
    struct walker *walker;
    struct recorder_stream stream[2]; /* taken in turn: see struct thread */
    unsigned streams;                 /* taken so far */
    int passing_through;              /* depth of calls of ours that are not to be counted */
    int is_late;                      /* said goodbye, or never can be known: see latethread.h */
    int goodbye_rounds;
    uint32_t epoch; /* of threads.epoch, when the walker was made */
} own;
/* What the struct of a thread held that forks inside the runtime. The gate is 0: it does not. */
static THREAD_LOCAL struct {
    uintptr_t gate;
    struct ledger_column *column;
    struct memtrace_thread_record *record;
    struct memtrace_counts *counts;
    struct walker *walker;
    const volatile clock_word *clock_word;
} forked_inside;

enum { GOODBYE_ROUNDS = 3 };

static struct {
    pthread_key_t key;
    int has_key;
    uint32_t joined; /* threads that ever came */
    uint32_t epoch;  /* how often all was given up: thread_forget_all() */
} threads;

void thread_pass_through(int on) {
    own.passing_through += on ? 1 : -1;
}

/* --- coming ----------------------------------------------------------------------------------- */

static int make_walker(void) {
    const struct stack_bounds *stack = threadstack_find();
    struct walker *walker;
    if (own.epoch != threads.epoch) {
        own.walker = NULL; /* that of before was given up */
        own.epoch = threads.epoch;
    }
    if (own.walker != NULL) {
        return 0;
    }
    walker = threadpool_take_walker();
    if (walker == NULL) {
        return -1;
    }
    if (walk_init(walker, stack->low, stack->high) != 0) {
        sys_unmap(walker, sizeof *walker);
        return -1;
    }
    walker->stack.entry = stack->entry;
    walker->stack.grows = stack->grows;
    if (stack->high == 0) {
        stack_find_own(&walker->stack, (uintptr_t)__builtin_frame_address(0), &thread_self);
    }
    own.walker = walker;
    return 0;
}

static void join_recording(struct thread *thread, struct recorder_stream *stream) {
    thread->generation = LOAD_ACQUIRE(&runtime.recorder.generation);
    thread->stream = NULL;
    if ((thread->generation & 1) != 0) { /* it is on */
        recorder_join(&runtime.recorder, stream, thread->id);
        thread->stream = stream;
        thread->is_special = 1;
    }
}

void thread_begin(struct thread *thread, struct recorder_stream *stream) {
    thread->clock_word = runtime.clock_word;
    tick_ask(thread);
    join_recording(thread, stream);
}

/* What it had of another recording is left as it is: its collector has what was in it. */
COLD void thread_settle(struct thread *thread) {
    struct sys_signals mask = sys_block_signals();
    if (thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation)) {
        join_recording(thread,
                       thread->is_late ? latethread_stream() : &own.stream[++own.streams % 2]);
        thread_settle_special(thread);
        if (thread->stream != NULL) {
            recorder_set_time(thread->stream,
                              sys_clock_ns(CLOCK_MONOTONIC) -
                                  runtime.space.header->start_monotonic_ns,
                              thread->tick);
        }
    }
    sys_restore_signals(mask);
}

/* 0, or -1: there is no room for its record. */
static int fill(struct thread *thread, struct walker *walker) {
    struct memtrace_header *header = runtime.space.header;
    struct ledger_column *column = ledger_adopt(&runtime.ledger);
    struct memtrace_thread_record *record = region_add_thread(&runtime.region, column->number);
    int alone;
    if (record == NULL) {
        ledger_release(&runtime.ledger, column);
        return -1;
    }
    child_end_direct(); /* another thread came, not by pthread_create */
    alone = __atomic_fetch_add(&threads.joined, 1, __ATOMIC_RELAXED) == 0 &&
            !runtime_is_attached(); /* there may be others that have not called us yet */
    thread->column = column;
    thread->record = record;
    thread->counts = &record->counts;
    thread->id = record->id;
    thread->churn_told = tick_churn(thread->counts);
    thread->walker = walker;
    thread_set_tick(thread, 0);
    walker->last.counted_pc = 0; /* its cell is of another column */
    thread_begin(thread, &own.stream[++own.streams % 2]);
    peak_join(&thread->peak, header, thread->counts, alone ? PEAK_ALONE : PEAK_SHARED);
    thread->is_noted = runtime.space.is_private;
    thread->is_special |= thread->is_noted;
    thread->gate = LOAD_RELAXED(&runtime.gate);
    if (UNLIKELY(forked_inside.gate != 0)) { /* its event goes on, half the parent's */
        thread->gate = forked_inside.gate;
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
    }
    return 0;
}

/* In a forked child the forking thread keeps its struct: an event that it is in uses it. */
static struct thread *own_struct(void) {
    return thread_self != &thread_none ? thread_self : threadpool_take();
}

/* Makes the calling thread known. NULL: cannot be had; the event that asked is lost. Where only its
 * record cannot be had, those to come are counted with those of threads that said goodbye. */
struct thread *thread_join(void) {
    struct sys_signals mask = sys_block_signals();
    struct thread *thread = NULL;
    if (make_walker() == 0) {
        thread = own_struct();
    }
    if (thread != NULL && fill(thread, own.walker) != 0) {
        threadpool_return(thread);
        thread_self = (struct thread *)&thread_none;
        own.is_late = 1;
        thread = NULL;
    }
    if (thread != NULL) {
        if (threads.has_key) {
            pthread_setspecific(threads.key, thread);
        }
        thread_self = thread;
    } else {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
    }
    sys_restore_signals(mask);
    return thread;
}

/* --- going ------------------------------------------------------------------------------------ */

static void tell_of_end(struct thread *thread) {
    peak_leave(&thread->peak, runtime.space.header);
    tick_tell_churn(thread, 1);
    if (thread->stream != NULL) {
        recorder_leave(thread->stream);
    }
    thread_watch_end_thread();
    region_end_thread(&runtime.region, thread->record);
    ledger_release(&runtime.ledger, thread->column);
}

/* Where the program was left, all that told of the thread may be gone. */
static void retire(struct thread *thread) {
    struct sys_signals mask = sys_block_signals();
    thread_self = (struct thread *)&thread_none;
    thread_shadow = NULL;
    own.is_late = 1;
    child_end_direct(); /* it is its thread */
    if (thread->record != NULL && (!runtime_is_attached() || runtime_is_ready())) {
        tell_of_end(thread);
    }
    if (own.walker != NULL && own.epoch == threads.epoch &&
        (!runtime_is_attached() || runtime_is_ready())) {
        threadpool_return_walker(own.walker);
        own.walker = NULL;
    }
    threadpool_return(thread);
    sys_restore_signals(mask);
}

/* The destructors of other keys may still allocate: ours asks to be called again, and goes last. */
static void say_goodbye(void *argument) {
    if (own.goodbye_rounds++ < GOODBYE_ROUNDS && pthread_setspecific(threads.key, argument) == 0) {
        return;
    }
    if (thread_self == argument) {
        retire(argument);
    }
}

void thread_note_foreign_library(void) {
    if (thread_self == &thread_none && threadstack_known()->high == 0 && !own.is_late &&
        sys_getpid() != sys_gettid()) {
        own.is_late = 1;
    }
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Whether the event that the thread entered is over, left by a longjmp: the stack has gone back
 * to where it was, or past it. Addresses of two stacks tell nothing, and a handler's stack may lie
 * inside another. */
static int was_left(const struct thread *thread, uintptr_t address) {
    const struct stack_bounds *stack = &thread->walker->stack;
    uintptr_t gate = (uintptr_t)machine_frame_record(thread->gate);
    struct stack_bounds alternate = {0};
    int on_alternate;
    address = (uintptr_t)machine_frame_record(address);
    sys_alternate_stack(&alternate.low, &alternate.high);
    on_alternate = stack_holds(&alternate, address);
    if (on_alternate != stack_holds(&alternate, gate)) {
        return !on_alternate; /* from a handler one returns before one goes on outside */
    }
    return address >= gate &&
           (on_alternate || (stack_holds(stack, address) && stack_holds(stack, gate)));
}

/* Where a handler interrupted an event that had begun before, that one goes on as it began. */
static void settle(struct thread *thread, uintptr_t address) {
    struct frame caller = event_caller_at(address);
    if (!interrupted_inside(&runtime.rules, thread->walker->stack, caller)) {
        thread_settle(thread);
    }
}

static struct thread *wake_known(struct thread *thread, uintptr_t address) {
    if (thread->gate == GATE_STOPPED) {
        switch_poll();
        thread->last_block = 0; /* what it allocated meanwhile nobody saw */
        thread->gate = LOAD_RELAXED(&runtime.gate);
    }
    if (UNLIKELY(thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation))) {
        settle(thread, address);
    }
    if (thread->gate == GATE_JOINING) { /* or not any more: and then it need not ask again */
        thread->gate = LOAD_RELAXED(&runtime.gate);
    }
    return thread;
}

/* The gate holds the address of where the thread entered the runtime. */
static struct thread *wake_busy(struct thread *thread, uintptr_t address) {
    if (was_left(thread, address)) {
        if (thread->stream != NULL) {
            recorder_abandon(thread->stream);
        }
        thread->gate = LOAD_RELAXED(&runtime.gate);
        return wake_known(thread, address);
    }
    space_lost(&runtime.space, MEMTRACE_LOST_EVENTS,
               !libunwind_calls(runtime.world.libunwind, address));
    return NULL;
}

/* Starting in a forked child may have made us known already. */
static struct thread *thread_join_once(void) {
    return thread_self->gate != GATE_NONE ? thread_self : thread_join();
}

static struct thread *wake(uintptr_t address) {
    struct thread *thread = thread_self;
    if (own.passing_through != 0) {
        return NULL;
    }
    if (thread->gate >= GATE_ADDRESSES) {
        return wake_busy(thread, address);
    }
    if (thread->gate == GATE_STOPPED || thread_counts(thread)) {
        return wake_known(thread, address);
    }
    own.passing_through++;
    if (own.is_late) { /* the blocks of "others" have one number in parent and child */
        child_grow();
    }
    thread = runtime_ensure() ? (own.is_late ? latethread_join() : thread_join_once()) : NULL;
    own.passing_through--;
    return thread != NULL && thread->gate >= GATE_ADDRESSES ? wake_busy(thread, address) : thread;
}

void thread_hand_in(void) {
    if (thread_counts(thread_self) || thread_self->gate == GATE_STOPPED) {
        peak_flush(&thread_self->peak, runtime.space.header);
        tick_tell_churn(thread_self, 1);
    }
}

COLD struct thread *thread_wake_for_free(uintptr_t address) {
    int saved = errno;
    struct thread *thread = wake(address);
    errno = saved;
    return thread;
}

COLD struct thread *thread_wake(uintptr_t address) {
    struct thread *thread = thread_wake_for_free(address);
    if (thread != NULL && thread->gate == GATE_STOPPED) {
        thread_done(thread);
        return NULL;
    }
    return thread;
}

/* --- the process ------------------------------------------------------------------------------ */

void thread_init_process(void) {
    threadpool_init();
    threads.has_key = threads.has_key || pthread_key_create(&threads.key, say_goodbye) == 0;
    latethread_init();
}

void thread_forget_all(void) {
    threadpool_wipe();
    latethread_forget();
    threads.epoch++;
    threads.joined = 0;
    peak_fork();
}

void thread_init_child(void) {
    threadpool_fork();
    latethread_fork();
    threads.joined = 0;
    peak_fork();
}

int thread_before_fork(struct frame caller) {
    struct thread *thread = thread_self;
    if (LIKELY(thread->gate < GATE_ADDRESSES) && /* which is open in a fast half, too */
        ((thread->gate != GATE_OPEN && thread->gate != GATE_JOINING) ||
         !interrupted_inside(&runtime.rules, thread->walker->stack, caller))) {
        return 0;
    }
    forked_inside.column = thread->column;
    forked_inside.record = thread->record;
    forked_inside.counts = thread->counts;
    forked_inside.walker = thread->walker;
    forked_inside.clock_word = thread->clock_word;
    forked_inside.gate = thread->gate;
    return 1;
}

void thread_after_fork(int is_child) {
    int saved = errno;
    own.passing_through++;
    if (is_child && !runtime_ensure()) { /* no region: its event ends in what was the parent's */
        thread_self->column = forked_inside.column;
        thread_self->record = forked_inside.record;
        thread_self->counts = forked_inside.counts;
        thread_self->walker = forked_inside.walker;
        thread_self->clock_word = forked_inside.clock_word;
    }
    own.passing_through--;
    forked_inside.gate = 0;
    errno = saved;
}

int thread_forked_inside(void) {
    return forked_inside.gate != 0;
}

void thread_stop_self(void) {
    if (thread_counts(thread_self)) {
        thread_self->gate = GATE_STOPPED;
    }
}

void thread_start_self(void) {
    if (thread_self->gate == GATE_STOPPED) {
        thread_self->gate = LOAD_RELAXED(&runtime.gate);
    }
}

void thread_expect_company(void) {
    /* Also while stopped: the peak goes on to be this thread's alone otherwise. */
    struct thread *thread = thread_get_for_free((uintptr_t)__builtin_frame_address(0));
    if (thread != NULL) {
        if (!child_grow()) { /* while it is moved nobody else may count */
            child_end_direct();
        }
        peak_become_shared(&thread->peak, runtime.space.header);
        thread_done(thread);
    }
}

COLD struct shadow_stack *thread_shadow_slow(void) {
    const struct stack_bounds *stack;
    int saved = errno;
    struct sys_signals mask;
    if (own.passing_through != 0 || own.is_late || runtime.state != RUNTIME_READY) {
        return NULL;
    }
    mask = sys_block_signals();
    stack = threadstack_find();
    if (stack->high != 0 && make_walker() == 0 &&
        (own.walker->shadow.capacity != 0 ||
         shadow_init(&own.walker->shadow, stack->low, stack->high) == 0)) {
        thread_shadow = &own.walker->shadow;
        __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_INSTRUMENTED,
                          __ATOMIC_RELAXED);
    }
    sys_restore_signals(mask);
    errno = saved;
    return thread_shadow;
}
