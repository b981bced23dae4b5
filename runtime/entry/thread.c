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

enum { POOL_BYTES = 1 << 20, GOODBYE_ROUNDS = 3 };

/* All struct threads, in memory that forked children find wiped. */
static struct {
    struct thread *start;
    uint32_t taken, capacity;
    struct thread *free;
    struct trylock lock; /* held for a few instructions, with signals blocked */
    pthread_key_t key;
    int has_key;
    uint32_t joined;     /* threads that ever came */
    struct thread *late; /* for events of threads that said goodbye */
    struct trylock late_lock;
    struct walker late_walker;
    struct recorder_stream late_stream;
} pool;

void thread_pass_through(int on) {
    passing_through += on ? 1 : -1;
}

static int new_pool(void) {
    pool.capacity = POOL_BYTES / sizeof(struct thread);
    pool.taken = 0;
    pool.free = NULL;
    pool.start = sys_map(POOL_BYTES);
    return pool.start != NULL && sys_wipe_on_fork(pool.start, POOL_BYTES) == 0 ? 0 : -1;
}

/* A wiped struct, or NULL: no memory, or not now. */
static struct thread *take_struct(void) {
    struct thread *thread = NULL;
    if (!sys_take(&pool.lock)) {
        return NULL;
    }
    if (pool.free != NULL) {
        thread = pool.free;
        pool.free = thread->next_free;
    } else if (pool.start != NULL && (pool.taken < pool.capacity || new_pool() == 0)) {
        thread = &pool.start[pool.taken++];
    }
    trylock_release(&pool.lock);
    if (thread != NULL) {
        *thread = (struct thread){0};
    }
    return thread;
}

static void return_struct(struct thread *thread) {
    if (sys_take(&pool.lock)) {
        thread->next_free = pool.free;
        pool.free = thread;
        trylock_release(&pool.lock);
    }
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
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
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
        struct walker *walker = sys_map(sizeof *walker);
        if (walker == NULL) {
            return -1;
        }
        if (walk_init(walker, stack_low, stack_high) != 0) {
            sys_unmap(walker, sizeof *walker);
            return -1;
        }
        walker->stack.entry = stack_entry;
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

static void fill(struct thread *thread, struct walker *walker) {
    struct memtrace_header *header = runtime.space.header;
    int alone = __atomic_fetch_add(&pool.joined, 1, __ATOMIC_RELAXED) == 0;
    thread->column = ledger_adopt(&runtime.ledger);
    thread->record = region_add_thread(&runtime.region, thread->column->number);
    thread->id = thread->record->id;
    thread->walker = walker;
    thread_set_tick(thread, 0);
    walker->last.counted_pc = 0; /* its cell is of another column */
    watch_clock(thread);
    peak_join(&thread->peak, header, alone);
    record_by(thread, &own_streams[++own_stream % 2]);
    thread->is_special |= runtime.space.is_private;
    thread->gate = LOAD_RELAXED(&runtime.gate);
    if (UNLIKELY(forked_inside.gate != 0)) { /* its event goes on, half the parent's */
        thread->gate = forked_inside.gate;
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
    }
}

/* In a forked child the forking thread keeps its struct: an event that it is in uses it. */
static struct thread *own_struct(void) {
    return thread_self != &thread_none ? thread_self : take_struct();
}

/* Makes the calling thread known. NULL: cannot be had; the event that asked is lost. */
struct thread *thread_join(void) {
    uint64_t mask = sys_block_signals();
    struct thread *thread = NULL;
    if (sys_getpid() == sys_gettid() && stack_high == 0) {
        note_main_stack();
    }
    if (make_walker() == 0) {
        thread = own_struct();
    }
    if (thread != NULL) {
        fill(thread, own_walker);
        if (pool.has_key) {
            pthread_setspecific(pool.key, thread);
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
    struct memtrace_header *header = runtime.space.header;
    uint64_t mask = sys_block_signals();
    thread_self = (struct thread *)&thread_none;
    thread_shadow = NULL;
    said_goodbye = 1;
    tick_tell_churn(thread);
    peak_leave(&thread->peak, header);
    if (thread->stream != NULL) {
        recorder_leave(thread->stream);
    }
    watching_end_thread();
    if (thread->id != MEMTRACE_THREAD_OTHERS) {
        STORE_RELAXED(&thread->record->end_ns,
                      sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
        STORE_RELEASE(&thread->record->state, MEMTRACE_THREAD_ENDED);
    }
    ledger_release(&runtime.ledger, thread->column);
    if (own_walker != NULL) {
        walk_free(own_walker);
        sys_unmap(own_walker, sizeof *own_walker);
        own_walker = NULL;
    }
    return_struct(thread);
    sys_restore_signals(mask);
}

/* The destructors of other keys may still allocate: ours asks to be called again, and goes last. */
static void say_goodbye(void *argument) {
    if (goodbye_rounds++ < GOODBYE_ROUNDS && pthread_setspecific(pool.key, argument) == 0) {
        return;
    }
    if (thread_self == argument) {
        retire(argument);
    }
}

static void make_late(void) {
    if (pool.late == NULL) {
        pool.late = take_struct();
    }
    if (pool.late != NULL && walk_init(&pool.late_walker, 0, 0) == 0) {
        pool.late->walker = &pool.late_walker;
        pool.late->column = runtime.ledger.proxy;
        pool.late->record = region_thread(&runtime.region, MEMTRACE_THREAD_OTHERS);
        pool.late->id = MEMTRACE_THREAD_OTHERS;
        watch_clock(pool.late);
        pool.late->peak.step = 1 << 16;
        pool.late->peak.room = 1 << 16;
        pool.late->peak.ceiling = 1 << 17;
        pool.late->gate = GATE_OPEN;
        pool.late->is_late = 1;
        pool.late->is_special = 1;
        record_by(pool.late, &pool.late_stream);
    }
}

/* A few frees of the C library come after the last destructor. They share one thread. */
static struct thread *join_late(void) {
    if (!sys_take(&pool.late_lock)) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        return NULL;
    }
    if (UNLIKELY(pool.late->column == NULL)) { /* wiped: this is a forked child */
        walk_free(&pool.late_walker);
        make_late();
    }
    pool.late->gate = LOAD_RELAXED(&runtime.gate);
    return pool.late;
}

void thread_note_foreign_library(void) {
    if (thread_self == &thread_none && stack_high == 0 && !said_goodbye &&
        sys_getpid() != sys_gettid()) {
        said_goodbye = 1;
    }
}

/* --- waking ----------------------------------------------------------------------------------- */

static int is_between(uintptr_t address, uintptr_t low, uintptr_t high) {
    return address >= low && address < high;
}

/* Whether the event that was entered at `gate` is over, left by a longjmp: the stack has gone back
 * to where it was, or past it. Addresses of two stacks tell nothing, and a handler's stack may lie
 * inside another. */
static int was_left(uintptr_t gate, uintptr_t address) {
    uintptr_t low, high;
    int on_alternate;
    sys_alternate_stack(&low, &high);
    on_alternate = is_between(address, low, high);
    if (on_alternate != is_between(gate, low, high)) {
        return !on_alternate; /* from a handler one returns before one goes on outside */
    }
    return address >= gate && (on_alternate || (is_between(address, stack_low, stack_high) &&
                                                is_between(gate, stack_low, stack_high)));
}

/* The gate holds the address of where the thread entered the runtime. */
static struct thread *wake_busy(struct thread *thread, uintptr_t address) {
    if (was_left(thread->gate, address)) {
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
        tick_tell_churn(thread_self);
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
    trylock_release(&pool.late_lock);
}

/* --- the process ------------------------------------------------------------------------------ */

void thread_init_process(void) {
    if (new_pool() != 0) {
        pool.start = NULL;
    }
    pool.has_key = pthread_key_create(&pool.key, say_goodbye) == 0;
    make_late();
}

void thread_init_child(void) {
    pool.lock.held = 0;
    pool.late_lock.held = 0;
    pool.free = NULL; /* what was in it is wiped */
    pool.joined = 0;
}

int thread_before_fork(struct frame caller) {
    struct thread *thread = thread_self;
    if (LIKELY(thread->gate < GATE_ADDRESSES) && /* which is open in a fast half, too */
        (thread->gate != GATE_OPEN ||
         !interrupted_inside(&runtime.rules, &thread->walker->stack, caller))) {
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

void thread_stop_all(void) {
    struct thread *first = LOAD_RELAXED(&pool.start);
    uint32_t count = first != NULL ? LOAD_RELAXED(&pool.taken) : 0;
    for (uint32_t i = 0; i < count && i < POOL_BYTES / sizeof *first; i++) {
        uintptr_t open = GATE_OPEN;
        __atomic_compare_exchange_n(&first[i].gate, &open, (uintptr_t)GATE_STOPPED, 0,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
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
    if (sys_getpid() == sys_gettid() && stack_high == 0) {
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
