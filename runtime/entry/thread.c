/* SPDX-License-Identifier: MIT */
/*
 * thread.c: threads coming, going, waking; where their structs lie and their stacks. See thread.h.
 * Called by events, by process/ and child.c where the process begins or forks, and by the program,
 * which calls pthread_create().
 */
#define _GNU_SOURCE
#include "runtime/entry/thread.h"

#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/entry/switch.h"
#include "runtime/libc/libc.h"
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
    int is_late;                      /* said goodbye, or never can be known: see `late` */
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

static struct {
    pthread_key_t key;
    int has_key;
    uint32_t joined; /* threads that ever came */
    uint32_t epoch;  /* how often all was given up: thread_forget_all() */
} threads;

/* One struct thread for all who have none of their own, one at a time: a few frees of the C library
 * come after a thread's last destructor, and some threads can never be known. They are counted with
 * "others". */
static struct {
    struct thread *thread;
    struct trylock lock;
    struct walker walker;
    struct recorder_stream stream;
} late;

void thread_pass_through(int on) {
    own.passing_through += on ? 1 : -1;
}

/* --- where the structs lie ----------------------------------------------------------------------
 *
 * Memory that a forked child finds wiped. Nothing of it is ever given back, so others may look at a
 * struct at any time. And walkers, of which a few are kept for the next threads: to map, touch and
 * unmap one costs more than all else about a thread. */

enum { POOL_BYTES = 1 << 20, WALKERS_KEPT = 16 };

struct thread_pool {
    struct thread_pool *older; /* full */
    struct thread thread[];
};
enum { POOL_CAPACITY = (POOL_BYTES - sizeof(struct thread_pool)) / sizeof(struct thread) };

static struct {
    struct thread_pool *newest;
    uint32_t taken; /* of the newest */
    struct thread *free;
    struct walker *walker[WALKERS_KEPT];
    uint32_t walkers;
    struct trylock lock; /* held for a few instructions */
} threadpool;

/* In this order: who looks at `taken` first misses no thread. */
static int threadpool_extend(void) {
    struct thread_pool *newest = sys_map(POOL_BYTES);
    if (newest == NULL) {
        return -1;
    }
    if (sys_wipe_on_fork(newest, POOL_BYTES) != 0) {
        sys_unmap(newest, POOL_BYTES);
        return -1;
    }
    own_maps_keep(newest);
    newest->older = threadpool.newest;
    STORE_RELEASE(&threadpool.newest, newest);
    STORE_RELEASE(&threadpool.taken, 0u);
    return 0;
}

/* The next of all structs that were ever taken, begun with all zeros; NULL: there is none. */
struct threadpool_walk {
    struct thread_pool *pool;
    uint32_t next, count;
};

static struct thread *threadpool_next(struct threadpool_walk *walk) {
    if (walk->pool == NULL) {
        walk->count = LOAD_ACQUIRE(&threadpool.taken);
        walk->pool = LOAD_ACQUIRE(&threadpool.newest);
    }
    while (walk->pool != NULL && (walk->next == walk->count || walk->next == POOL_CAPACITY)) {
        walk->pool = walk->pool->older;
        walk->next = 0;
        walk->count = POOL_CAPACITY;
    }
    return walk->pool != NULL ? &walk->pool->thread[walk->next++] : NULL;
}

void thread_wipe_all(void) {
    struct threadpool_walk walk = {0};
    struct thread *thread;
    while ((thread = threadpool_next(&walk)) != NULL) {
        struct thread *next_free = thread->next_free;
        *thread = (struct thread){.next_free = next_free};
    }
    threadpool.walkers = 0;
}

int thread_is_any_inside(void) {
    struct threadpool_walk walk = {0};
    struct thread *thread;
    while ((thread = threadpool_next(&walk)) != NULL) {
        if (LOAD_ACQUIRE(&thread->gate) >= GATE_ADDRESSES && thread != thread_self) {
            return 1;
        }
    }
    return 0;
}

/* Every thread that is open, or that is counted in any way, finds its gate at `to`. */
static void threadpool_move_gates(int only_open, uintptr_t to) {
    struct threadpool_walk walk = {0};
    struct thread *thread;
    while ((thread = threadpool_next(&walk)) != NULL) {
        uintptr_t gate = LOAD_RELAXED(&thread->gate);
        if (gate == GATE_OPEN || (!only_open && (gate == GATE_SAMPLED || gate == GATE_JOINING))) {
            __atomic_compare_exchange_n(&thread->gate, &gate, to, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        }
    }
}

void thread_stop_all(void) {
    threadpool_move_gates(0, GATE_STOPPED);
}

void thread_join_all(void) {
    threadpool_move_gates(1, GATE_JOINING);
}

/* All zeros, or NULL: no memory, or not now. Signals are blocked. */
static struct thread *threadpool_take(void) {
    struct thread *thread = NULL;
    if (!sys_take(&threadpool.lock)) {
        return NULL;
    }
    if (threadpool.free != NULL) {
        thread = threadpool.free;
        threadpool.free = thread->next_free;
    } else if (threadpool.newest != NULL &&
               (threadpool.taken < POOL_CAPACITY || threadpool_extend() == 0)) {
        thread = &threadpool.newest->thread[threadpool.taken];
        STORE_RELEASE(&threadpool.taken, threadpool.taken + 1);
    }
    trylock_release(&threadpool.lock);
    if (thread != NULL) {
        *thread = (struct thread){0};
    }
    return thread;
}

static void threadpool_return(struct thread *thread) {
    if (sys_take(&threadpool.lock)) {
        thread->next_free = threadpool.free;
        threadpool.free = thread;
        trylock_release(&threadpool.lock);
    }
}

/* To be initialised; NULL: no memory. Signals are blocked. */
static struct walker *threadpool_take_walker(void) {
    struct walker *walker = NULL;
    if (LOAD_RELAXED(&threadpool.walkers) != 0 && sys_take(&threadpool.lock)) {
        if (threadpool.walkers != 0) {
            walker = threadpool.walker[--threadpool.walkers];
        }
        trylock_release(&threadpool.lock);
    }
    return walker != NULL ? walker : sys_map(sizeof *walker);
}

/* Its thread is gone. */
static void threadpool_return_walker(struct walker *walker) {
    if (LOAD_RELAXED(&threadpool.walkers) < WALKERS_KEPT) {
        walk_forget(walker);
        if (sys_take(&threadpool.lock)) {
            if (threadpool.walkers < WALKERS_KEPT) {
                threadpool.walker[threadpool.walkers++] = walker;
                walker = NULL;
            }
            trylock_release(&threadpool.lock);
        }
    }
    if (walker != NULL) {
        walk_free(walker);
        sys_unmap(walker, sizeof *walker);
    }
}

/* --- its stack ---------------------------------------------------------------------------------
 *
 * Where the calling thread's own stack lies: noted on threads that pthread_create() made, asked of
 * the kernel on the main thread; not known on others, whose high is 0. */

static THREAD_LOCAL struct stack_bounds own_stack;

/* As far as it is known. Looks for it on the main thread. */
static const struct stack_bounds *stack_find_main(void) {
    if (own_stack.high == 0 && sys_getpid() == sys_gettid()) {
        uint64_t limit;
        uint64_t most = UINT64_C(1) << 30;
        sys_stack_limit(&limit);
        own_stack.high = (libc_stack_top(&own_stack.entry) | (sys_page_bytes() - 1)) + 1;
        own_stack.low = own_stack.high - (limit < most ? limit : most);
    }
    return &own_stack;
}

/* --- coming ----------------------------------------------------------------------------------- */

static int thread_make_walker(void) {
    const struct stack_bounds *stack = stack_find_main();
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

static void thread_join_recording(struct thread *thread, struct recorder_stream *stream) {
    thread->generation = LOAD_ACQUIRE(&runtime.recorder.generation);
    thread->stream = NULL;
    if ((thread->generation & 1) != 0) { /* it is on */
        recorder_join(&runtime.recorder, stream, thread->id);
        thread->stream = stream;
        thread->is_special = 1;
    }
}

/* Of a struct thread whose id is set: it has a clock, and a stream where it is recorded. */
static void thread_begin(struct thread *thread, struct recorder_stream *stream) {
    thread->clock_word = runtime.clock_word;
    tick_ask(thread);
    thread_join_recording(thread, stream);
}

/* What it had of another recording is left as it is: its collector has what was in it. */
COLD void thread_settle(struct thread *thread) {
    struct sys_signals mask = sys_block_signals();
    if (thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation)) {
        thread_join_recording(thread,
                              thread->is_late ? &late.stream : &own.stream[++own.streams % 2]);
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
static int thread_fill(struct thread *thread, struct walker *walker) {
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

/* Makes the calling thread known. NULL: cannot be had; the event that asked is lost. Where only its
 * record cannot be had, those to come are counted with those of threads that said goodbye. */
struct thread *thread_join(void) {
    struct sys_signals mask = sys_block_signals();
    struct thread *thread = NULL;
    if (thread_make_walker() == 0) {
        /* In a forked child the forking thread keeps its struct: an event that it is in uses it. */
        thread = thread_self != &thread_none ? thread_self : threadpool_take();
    }
    if (thread != NULL && thread_fill(thread, own.walker) != 0) {
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

/* --- those who have none of their own --------------------------------------------------------- */

static void late_init(void) {
    if (late.thread == NULL) {
        late.thread = threadpool_take();
    }
    if (late.thread != NULL && walk_init(&late.walker, 0, 0) == 0) {
        late.thread->walker = &late.walker;
        late.thread->column = runtime.ledger.proxy;
        late.thread->record = region_thread(&runtime.region, MEMTRACE_THREAD_OTHERS);
        late.thread->counts = &late.thread->record->counts;
        late.thread->id = MEMTRACE_THREAD_OTHERS;
        late.thread->peak =
            (struct peak_share){.low = INT64_MAX, .high = INT64_MIN, .counts = late.thread->counts};
        late.thread->is_late = 1;
        late.thread->is_special = 1;
        thread_begin(late.thread, &late.stream);
        late.thread->gate = GATE_OPEN;
    }
}

/* For one event, until thread_done(). NULL: it is lost. */
static struct thread *late_join(void) {
    if (late.thread == NULL || !sys_take(&late.lock)) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        return NULL;
    }
    if (UNLIKELY(late.thread->column == NULL)) { /* wiped: this is a forked child */
        walk_forget(&late.walker);
        walk_free(&late.walker);
        late_init();
    }
    if (late.thread->column == NULL) { /* no memory */
        trylock_release(&late.lock);
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        return NULL;
    }
    peak_end_alone(runtime.space.header);
    if (UNLIKELY(late.thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation))) {
        thread_settle(late.thread);
    }
    late.thread->gate = LOAD_RELAXED(&runtime.gate);
    return late.thread;
}

COLD void thread_done_late(void) {
    trylock_release(&late.lock);
}

/* --- going ------------------------------------------------------------------------------------ */

/* Where the program was left, all that told of the thread may be gone. */
static void thread_retire(struct thread *thread) {
    struct sys_signals mask = sys_block_signals();
    int is_here = !runtime_is_attached() || runtime_is_ready();
    thread_self = (struct thread *)&thread_none;
    thread_shadow = NULL;
    own.is_late = 1;
    child_end_direct(); /* it is its thread */
    if (thread->record != NULL && is_here) {
        peak_leave(&thread->peak, runtime.space.header);
        tick_tell_churn(thread, 1);
        if (thread->stream != NULL) {
            recorder_leave(thread->stream);
        }
        thread_watch_end_thread();
        region_end_thread(&runtime.region, thread->record);
        ledger_release(&runtime.ledger, thread->column);
    }
    if (own.walker != NULL && own.epoch == threads.epoch && is_here) {
        threadpool_return_walker(own.walker);
        own.walker = NULL;
    }
    threadpool_return(thread);
    sys_restore_signals(mask);
}

/* The destructors of other keys may still allocate: ours asks to be called again, and goes last. */
static void thread_say_goodbye(void *argument) {
    enum { GOODBYE_ROUNDS = 3 };
    if (own.goodbye_rounds++ < GOODBYE_ROUNDS && pthread_setspecific(threads.key, argument) == 0) {
        return;
    }
    if (thread_self == argument) {
        thread_retire(argument);
    }
}

void thread_note_foreign_library(void) {
    if (thread_self == &thread_none && own_stack.high == 0 && !own.is_late &&
        sys_getpid() != sys_gettid()) {
        own.is_late = 1;
    }
}

/* --- waking ----------------------------------------------------------------------------------- */

/* Whether the event that the thread entered is over, left by a longjmp: the stack has gone back
 * to where it was, or past it. Addresses of two stacks tell nothing, and a handler's stack may lie
 * inside another. */
static int thread_was_left(const struct thread *thread, uintptr_t address) {
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

static struct thread *thread_wake_known(struct thread *thread, uintptr_t address) {
    if (thread->gate == GATE_STOPPED) {
        switch_poll();
        thread->last_block = 0; /* what it allocated meanwhile nobody saw */
        thread->gate = LOAD_RELAXED(&runtime.gate);
    }
    /* Where a handler interrupted an event that had begun before, that one goes on as it began. */
    if (UNLIKELY(thread->generation != LOAD_ACQUIRE(&runtime.recorder.generation)) &&
        !interrupted_inside(&runtime.rules, thread->walker->stack, event_caller_at(address))) {
        thread_settle(thread);
    }
    if (thread->gate == GATE_JOINING) { /* or not any more: and then it need not ask again */
        thread->gate = LOAD_RELAXED(&runtime.gate);
    }
    return thread;
}

/* The gate holds the address of where the thread entered the runtime. */
static struct thread *thread_wake_busy(struct thread *thread, uintptr_t address) {
    if (thread_was_left(thread, address)) {
        if (thread->stream != NULL) {
            recorder_abandon(thread->stream);
        }
        thread->gate = LOAD_RELAXED(&runtime.gate);
        return thread_wake_known(thread, address);
    }
    space_lost(&runtime.space, MEMTRACE_LOST_EVENTS,
               !libunwind_calls(runtime.world.libunwind, address));
    return NULL;
}

static struct thread *thread_wake_any(uintptr_t address) {
    struct thread *thread = thread_self;
    if (own.passing_through != 0) {
        return NULL;
    }
    if (thread->gate >= GATE_ADDRESSES) {
        return thread_wake_busy(thread, address);
    }
    if (thread->gate == GATE_STOPPED || thread_counts(thread)) {
        return thread_wake_known(thread, address);
    }
    own.passing_through++;
    if (own.is_late) { /* the blocks of "others" have one number in parent and child */
        child_grow();
    }
    if (!runtime_ensure()) {
        thread = NULL;
    } else if (own.is_late) {
        thread = late_join();
    } else { /* starting in a forked child may have made us known already */
        thread = thread_self->gate != GATE_NONE ? thread_self : thread_join();
    }
    own.passing_through--;
    return thread != NULL && thread->gate >= GATE_ADDRESSES ? thread_wake_busy(thread, address)
                                                            : thread;
}

void thread_hand_in(void) {
    if (thread_counts(thread_self) || thread_self->gate == GATE_STOPPED) {
        peak_flush(&thread_self->peak, runtime.space.header);
        tick_tell_churn(thread_self, 1);
    }
}

COLD struct thread *thread_wake_for_free(uintptr_t address) {
    int saved = errno;
    struct thread *thread = thread_wake_any(address);
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
    if (threadpool.newest == NULL) {
        threadpool_extend();
    }
    threads.has_key = threads.has_key || pthread_key_create(&threads.key, thread_say_goodbye) == 0;
    late_init();
}

void thread_forget_all(void) {
    thread_wipe_all();
    late.walker = (struct walker){0};
    threads.epoch++;
    threads.joined = 0;
    peak_fork();
}

/* What was free is wiped, lists and all; the structs of threads that are not here are idle. */
void thread_init_child(void) {
    threadpool.free = NULL;
    threadpool.walkers = 0;
    threadpool.lock.held = 0;
    trylock_fork(&late.lock);
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
    stack = stack_find_main();
    if (stack->high != 0 && thread_make_walker() == 0 &&
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

/* --- pthread_create, so that a thread's stack is known before it runs --------------------------
 *
 * The thread starts in our function, which leaves by a tail call: no frame of ours stays on its
 * stack. */

typedef void *start_function(void *argument);

/* What a new thread is to do. In memory of our own: it is none of the program's. */
struct start {
    start_function *function; /* NULL: the place is free */
    void *argument;
    struct libc_stack stack;
};

enum { STARTS = 256 };
static struct start starts[STARTS]; /* of threads that have not begun yet */
static uint32_t next_start;

/* A place for it; NULL: there is none. */
static struct start *start_keep(const struct start *start) {
    uint32_t first = __atomic_fetch_add(&next_start, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < STARTS; i++) {
        struct start *place = &starts[(first + i) % STARTS];
        start_function *none = NULL;
        if (LOAD_RELAXED(&place->function) == NULL &&
            __atomic_compare_exchange_n(&place->function, &none, start->function, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            place->argument = start->argument;
            place->stack = start->stack;
            return place;
        }
    }
    struct start *more = sys_map(sizeof *more);
    if (more != NULL) {
        *more = *start;
    }
    return more;
}

static void start_give_back(struct start *place) {
    if (place >= starts && place < starts + STARTS) {
        STORE_RELEASE(&place->function, (start_function *)NULL);
    } else {
        sys_unmap(place, sizeof *place);
    }
}

static __attribute__((noinline)) void start_note_stack(const struct libc_stack *planned) {
    uintptr_t low;
    uintptr_t high;
    int is_all = libc_own_stack(planned, &low, &high);
    if (is_all >= 0) {
        own_stack = (struct stack_bounds){.low = low, .high = high, .grows = !is_all};
    }
}

/* Leaves by a jump, so nothing of its frame is handed on. */
static void *start_begin(void *argument) {
    struct start *place = argument;
    start_function *function = place->function;
    void *given = place->argument;
    int saved = errno;
    libc_note_outermost(__builtin_return_address(0));
    start_note_stack(&place->stack);
    start_give_back(place);
    errno = saved;
    return function(given);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          start_function *function, void *argument) {
    __auto_type real_create = REAL(pthread_create);
    struct start start = {.function = function, .argument = argument};
    struct start *kept;
    int result;
    thread_expect_company();
    libc_plan_stack(attributes, &start.stack);
    kept = start_keep(&start);
    if (kept == NULL) {
        return real_create(thread, attributes, function, argument);
    }
    /* What the C library allocates for the thread is counted, as valgrind does. */
    result = real_create(thread, attributes, start_begin, kept);
    if (result != 0) {
        start_give_back(kept);
    }
    return result;
}
