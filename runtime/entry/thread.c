/* SPDX-License-Identifier: MIT */
/* thread.c: threads coming, going, waking. See thread.h. */
#define _GNU_SOURCE
#include "runtime/entry/thread.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/threadpool.h"
#include "runtime/entry/tick.h"
#include "runtime/entry/watching.h"
#include "runtime/stack/interrupted.h"
#include "runtime/stack/libunwind.h"

#include <errno.h>
#include <pthread.h>

extern void *__libc_stack_end; /* glibc: where the main thread's stack began */

static const struct thread thread_none; /* the gate is 0 */

THREAD_LOCAL struct thread *thread_self = (struct thread *)&thread_none;
THREAD_LOCAL struct shadow_stack *thread_shadow;
static THREAD_LOCAL struct walker *own_walker;
static THREAD_LOCAL uintptr_t stack_low, stack_high, stack_entry;
static THREAD_LOCAL int passing_through, said_goodbye, goodbye_rounds;
static THREAD_LOCAL struct recorder_stream own_streams[2]; /* taken in turn: see struct thread */
static THREAD_LOCAL unsigned own_stream;
/* What the struct of a thread held that forks inside the runtime. The gate is 0: it does not. */
static THREAD_LOCAL struct {
    uintptr_t gate;
    struct ledger_column *column;
    struct memtrace_thread_record *record;
    struct walker *walker;
    const volatile clock_word *clock_word;
} forked_inside;

enum { GOODBYE_ROUNDS = 3 };

static struct {
    pthread_key_t key;
    int has_key;
    uint32_t joined;     /* threads that ever came */
    struct thread *late; /* for events of threads that said goodbye */
    struct trylock late_lock;
    struct walker late_walker;
    struct recorder_stream late_stream;
} threads;

void thread_pass_through(int on) {
    passing_through += on ? 1 : -1;
}

/* --- the stack of the thread ------------------------------------------------------------------ */

static void note_main_stack(void) {
    uint64_t limit;
    uint64_t most = UINT64_C(1) << 30;
    sys_stack_limit(&limit);
    stack_high = ((uintptr_t)__libc_stack_end | (MEMTRACE_PAGE_SIZE - 1)) + 1;
    stack_low = stack_high - (limit < most ? limit : most);
    stack_entry = (uintptr_t)__libc_stack_end;
}

/* Runs on the new thread, where calling the C library is safe. */
void thread_note_stack(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    thread_pass_through(1);
    if (sys_may_ask_affinity() && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
            stack_low = (uintptr_t)low;
            stack_high = (uintptr_t)low + size;
        }
        pthread_attr_destroy(&attributes);
    }
    thread_pass_through(0);
}

/* --- coming ----------------------------------------------------------------------------------- */

static int make_walker(void) {
    if (own_walker == NULL) {
        struct walker *walker = threadpool_take_walker();
        if (walker == NULL) {
            return -1;
        }
        if (walk_init(walker, stack_low, stack_high) != 0) {
            sys_unmap(walker, sizeof *walker);
            return -1;
        }
        walker->stack.entry = stack_entry;
        if (stack_high == 0) {
            stack_find_own(&walker->stack, (uintptr_t)__builtin_frame_address(0), &thread_self);
        }
        own_walker = walker;
    }
    return 0;
}

static void record_by(struct thread *thread, struct recorder_stream *stream) {
    if (runtime.recorder.recording != NULL) {
        recorder_join(&runtime.recorder, stream, thread->id);
        thread->stream = stream;
        thread->is_special = 1;
    }
}

static void watch_clock(struct thread *thread) {
    thread->clock_word = runtime.clock_word;
    tick_ask(thread);
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
    alone = __atomic_fetch_add(&threads.joined, 1, __ATOMIC_RELAXED) == 0;
    thread->column = column;
    thread->record = record;
    thread->id = record->id;
    thread->churn_told = tick_churn(record);
    thread->walker = walker;
    thread_set_tick(thread, 0);
    walker->last.counted_pc = 0; /* its cell is of another column */
    watch_clock(thread);
    peak_join(&thread->peak, header, thread->record, alone ? PEAK_ALONE : PEAK_SHARED);
    record_by(thread, &own_streams[++own_stream % 2]);
    thread->is_special |= runtime.space.is_private;
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
    uint64_t mask = sys_block_signals();
    struct thread *thread = NULL;
    if (stack_high == 0 && sys_getpid() == sys_gettid()) {
        note_main_stack();
    }
    if (make_walker() == 0) {
        thread = own_struct();
    }
    if (thread != NULL && fill(thread, own_walker) != 0) {
        threadpool_return(thread);
        thread_self = (struct thread *)&thread_none;
        said_goodbye = 1;
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

static void retire(struct thread *thread) {
    uint64_t mask = sys_block_signals();
    thread_self = (struct thread *)&thread_none;
    thread_shadow = NULL;
    said_goodbye = 1;
    peak_leave(&thread->peak, runtime.space.header);
    tick_tell_churn(thread, 1);
    if (thread->stream != NULL) {
        recorder_leave(thread->stream);
    }
    watching_end_thread();
    region_end_thread(&runtime.region, thread->record);
    ledger_release(&runtime.ledger, thread->column);
    if (own_walker != NULL) {
        threadpool_return_walker(own_walker);
        own_walker = NULL;
    }
    threadpool_return(thread);
    sys_restore_signals(mask);
}

/* The destructors of other keys may still allocate: ours asks to be called again, and goes last. */
static void say_goodbye(void *argument) {
    if (goodbye_rounds++ < GOODBYE_ROUNDS && pthread_setspecific(threads.key, argument) == 0) {
        return;
    }
    if (thread_self == argument) {
        retire(argument);
    }
}

static void make_late(void) {
    if (threads.late == NULL) {
        threads.late = threadpool_take();
    }
    if (threads.late != NULL && walk_init(&threads.late_walker, 0, 0) == 0) {
        threads.late->walker = &threads.late_walker;
        threads.late->column = runtime.ledger.proxy;
        threads.late->record = region_thread(&runtime.region, MEMTRACE_THREAD_OTHERS);
        threads.late->id = MEMTRACE_THREAD_OTHERS;
        watch_clock(threads.late);
        threads.late->peak = (struct peak_share){
            .low = INT64_MAX, .high = INT64_MIN, .record = threads.late->record};
        threads.late->gate = GATE_OPEN;
        threads.late->is_late = 1;
        threads.late->is_special = 1;
        record_by(threads.late, &threads.late_stream);
    }
}

/* A few frees of the C library come after the last destructor. They share one thread. */
static struct thread *join_late(void) {
    if (!sys_take(&threads.late_lock)) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        return NULL;
    }
    if (UNLIKELY(threads.late->column == NULL)) { /* wiped: this is a forked child */
        walk_free(&threads.late_walker);
        make_late();
    }
    peak_end_alone(runtime.space.header);
    threads.late->gate = LOAD_RELAXED(&runtime.gate);
    return threads.late;
}

void thread_note_foreign_library(void) {
    if (thread_self == &thread_none && stack_high == 0 && !said_goodbye &&
        sys_getpid() != sys_gettid()) {
        said_goodbye = 1;
    }
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Whether the event that the thread entered is over, left by a longjmp: the stack has gone back
 * to where it was, or past it. Addresses of two stacks tell nothing, and a handler's stack may lie
 * inside another. */
static int was_left(const struct thread *thread, uintptr_t address) {
    const struct stack_bounds *stack = &thread->walker->stack;
    uintptr_t gate = thread->gate;
    struct stack_bounds alternate = {0};
    int on_alternate;
    sys_alternate_stack(&alternate.low, &alternate.high);
    on_alternate = stack_holds(&alternate, address);
    if (on_alternate != stack_holds(&alternate, gate)) {
        return !on_alternate; /* from a handler one returns before one goes on outside */
    }
    return address >= gate &&
           (on_alternate || (stack_holds(stack, address) && stack_holds(stack, gate)));
}

/* The gate holds the address of where the thread entered the runtime. */
static struct thread *wake_busy(struct thread *thread, uintptr_t address) {
    if (was_left(thread, address)) {
        if (thread->stream != NULL) {
            recorder_abandon(thread->stream);
        }
        thread->gate = LOAD_RELAXED(&runtime.gate);
        return thread;
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
    if (passing_through != 0) {
        return NULL;
    }
    if (thread->gate >= GATE_ADDRESSES) {
        return wake_busy(thread, address);
    }
    if (thread->gate == GATE_STOPPED) {
        thread->gate = LOAD_RELAXED(&runtime.gate);
        return thread;
    }
    if (thread->gate == GATE_OPEN) {
        return thread;
    }
    passing_through++;
    if (said_goodbye) { /* the blocks of "others" have one number in parent and child */
        child_grow();
    }
    thread = runtime_ensure() ? (said_goodbye ? join_late() : thread_join_once()) : NULL;
    passing_through--;
    return thread != NULL && thread->gate >= GATE_ADDRESSES ? wake_busy(thread, address) : thread;
}

void thread_hand_in(void) {
    if (thread_self->gate == GATE_OPEN || thread_self->gate == GATE_STOPPED) {
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

COLD void thread_done_late(void) {
    trylock_release(&threads.late_lock);
}

/* --- the process ------------------------------------------------------------------------------ */

void thread_init_process(void) {
    threadpool_init();
    threads.has_key = pthread_key_create(&threads.key, say_goodbye) == 0;
    make_late();
}

void thread_init_child(void) {
    threadpool_fork();
    threads.late_lock.held = 0;
    threads.joined = 0;
    peak_fork();
}

int thread_before_fork(struct frame caller) {
    struct thread *thread = thread_self;
    if (LIKELY(thread->gate < GATE_ADDRESSES) && /* which is open in a fast half, too */
        (thread->gate != GATE_OPEN ||
         !interrupted_inside(&runtime.rules, thread->walker->stack, caller))) {
        return 0;
    }
    forked_inside.column = thread->column;
    forked_inside.record = thread->record;
    forked_inside.walker = thread->walker;
    forked_inside.clock_word = thread->clock_word;
    forked_inside.gate = thread->gate;
    return 1;
}

void thread_after_fork(int is_child) {
    int saved = errno;
    passing_through++;
    if (is_child && !runtime_ensure()) { /* no region: its event ends in what was the parent's */
        thread_self->column = forked_inside.column;
        thread_self->record = forked_inside.record;
        thread_self->walker = forked_inside.walker;
        thread_self->clock_word = forked_inside.clock_word;
    }
    passing_through--;
    forked_inside.gate = 0;
    errno = saved;
}

int thread_forked_inside(void) {
    return forked_inside.gate != 0;
}

void thread_stop_self(void) {
    if (thread_self->gate == GATE_OPEN) {
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
        child_grow(); /* while it is moved nobody else may count */
        peak_become_shared(&thread->peak, runtime.space.header);
        thread_done(thread);
    }
}

COLD struct shadow_stack *thread_shadow_slow(void) {
    int saved = errno;
    uint64_t mask;
    if (passing_through != 0 || said_goodbye || runtime.state != RUNTIME_READY) {
        return NULL;
    }
    mask = sys_block_signals();
    if (stack_high == 0 && sys_getpid() == sys_gettid()) {
        note_main_stack();
    }
    if (stack_high != 0 && make_walker() == 0 &&
        (own_walker->shadow.capacity != 0 ||
         shadow_init(&own_walker->shadow, stack_low, stack_high) == 0)) {
        thread_shadow = &own_walker->shadow;
        __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_INSTRUMENTED,
                          __ATOMIC_RELAXED);
    }
    sys_restore_signals(mask);
    errno = saved;
    return thread_shadow;
}
