/* SPDX-License-Identifier: MIT */
/* switch.c: the gate of the process. See switch.h. Called by the API, by signals, by each thread
 * that finds a wish in the header, and where the process begins. */
#include "runtime/entry/switch.h"

#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/entry/recording_switch.h"

#include <errno.h>

/* --- marks: what was switched is told in the recording ---------------------------------------- */

/* Bit m: mark m is due. A handler that interrupted the runtime leaves it to the event it did. */
static uint32_t due;

static void switch_mark(enum memtrace_mark what) {
    if (!recorder_is_on(&runtime.recorder) || LOAD_RELAXED(&runtime.state) != RUNTIME_READY) {
        return;
    }
    if (thread_self->gate < GATE_ADDRESSES) {
        event_mark(what, 0, "", 0, EVENT_CALLER());
    } else {
        __atomic_fetch_or(&due, 1u << what, __ATOMIC_RELAXED);
        tick_ask(thread_self);
    }
}

COLD void switch_tell(struct thread *thread) {
    uint32_t marks = __atomic_exchange_n(&due, 0, __ATOMIC_RELAXED);
    for (enum memtrace_mark what = MEMTRACE_MARK_SNAPSHOT; what <= MEMTRACE_MARK_OFF; what++) {
        if ((marks >> what & 1) != 0 && thread->stream != NULL) {
            recorder_mark(thread->stream, what, 0, "", 0);
        }
    }
}

int switch_has_to_tell(void) {
    return LOAD_RELAXED(&due) != 0;
}

/* --- the gate --------------------------------------------------------------------------------- */

enum { DEFAULT_MEAN = 512 << 10 };

/* What the gate is while counting is on. */
static uintptr_t switch_gate_on(void) {
    return LOAD_RELAXED(&runtime.sample_bytes) != 0 ? GATE_SAMPLED
           : recording_switch_is_moving()           ? GATE_JOINING
                                                    : GATE_OPEN;
}

static void switch_describe(void) {
    struct memtrace_header *header = runtime.space.header;
    uintptr_t gate = LOAD_RELAXED(&runtime.gate);
    uint64_t mean = LOAD_RELAXED(&runtime.sample_bytes);
    uint32_t mode = gate == GATE_STOPPED ? MEMTRACE_MODE_OFF
                    : mean != 0          ? MEMTRACE_MODE_SAMPLED
                                         : MEMTRACE_MODE_EXACT;
    if (mean != 0) { /* nothing that is estimated may be read as if it were counted */
        STORE_RELAXED(&header->sample_bytes, mean);
        __atomic_fetch_or(&header->flags, MEMTRACE_FLAG_SAMPLED, __ATOMIC_RELAXED);
        STORE_RELAXED(&header->sampled_heap, (uint64_t)(uintptr_t)&sampled_heap);
    }
    STORE_RELAXED(&header->mode, mode);
}

/* Before any thread goes by the gate. In mode sampled, and while stopped, the filter says which
 * frees are looked at in the sampled heap, and in mode sampled it alone which are looked at at all.
 */
static void switch_prepare(uintptr_t to) {
    if (to == GATE_OPEN || to == GATE_JOINING) { /* before any thread counts so */
        STORE_RELAXED(&runtime.counted_exactly, 1u);
        malloc_prepare(MALLOC_EXACT);
        return;
    }
    preexisting_end();
    sampled_heap_expect(real_early, REAL_EARLY_BYTES);
    malloc_prepare(to != GATE_SAMPLED                       ? MALLOC_STOPPED
                   : LOAD_RELAXED(&runtime.counted_exactly) ? MALLOC_SAMPLED_AGAIN
                                                            : MALLOC_SAMPLED);
}

/* The threads follow: each finds its gate stopped, and takes over the new one. Not where the
 * process is past its end, or never began. */
static void switch_move_gate(uintptr_t to) {
    uintptr_t from = LOAD_RELAXED(&runtime.gate);
    if (from == GATE_NONE) {
        return;
    }
    if (from != to && to == GATE_STOPPED) {
        switch_mark(MEMTRACE_MARK_OFF);
    }
    switch_prepare(to);
    if (!__atomic_compare_exchange_n(&runtime.gate, &from, to, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return; /* the process ends */
    }
    switch_describe();
    if (from == GATE_OPEN && to == GATE_JOINING) {
        thread_join_all();
    } else if (from != to && from != GATE_STOPPED &&
               !(from == GATE_JOINING && to == GATE_OPEN)) { /* who is joining has that before it */
        thread_stop_all();
    }
    if (from == GATE_STOPPED && to != GATE_STOPPED) {
        thread_start_self();
        switch_mark(MEMTRACE_MARK_ON);
    }
}

/* One at a time moves the gate. Who wants it moved meanwhile, in a handler or on another thread,
 * leaves that to the one who is at it. */
static struct {
    struct trylock lock;
    uint32_t asked; /* times that something was wanted */
    uint32_t is_on; /* the last that was */
} wanted;

static void switch_want(uint32_t is_on) {
    uint32_t seen;
    STORE_RELAXED(&wanted.is_on, is_on);
    __atomic_fetch_add(&wanted.asked, 1, __ATOMIC_SEQ_CST);
    do {
        if (!trylock_take(&wanted.lock)) {
            return;
        }
        seen = LOAD_RELAXED(&wanted.asked);
        switch_move_gate(LOAD_RELAXED(&wanted.is_on) ? switch_gate_on() : GATE_STOPPED);
        trylock_release(&wanted.lock);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* who did not get it has asked before */
    } while (LOAD_RELAXED(&wanted.asked) != seen);
}

void switch_renew(void) {
    switch_want(switch_is_on());
}

void switch_fork(void) {
    trylock_fork(&wanted.lock);
    recording_switch_fork();
    if (LOAD_RELAXED(&runtime.gate) == GATE_JOINING) {
        STORE_RELAXED(&runtime.gate, (uintptr_t)GATE_OPEN);
    }
    switch_describe();
}

/* Of a recording, or of the profile. */
static void switch_set_mean(uint64_t mean) {
    if (!recorder_is_on(&runtime.recorder)) {
        STORE_RELAXED(&runtime.sample_bytes, mean);
        return;
    }
    STORE_RELAXED(&runtime.recorder.recording->sample_bytes, mean);
    if (thread_self->gate < GATE_ADDRESSES) {
        event_mark(MEMTRACE_MARK_SAMPLE, mean, "", 0, EVENT_CALLER());
    }
}

static uint64_t switch_last_mean(void) {
    uint64_t mean = runtime.settings.recording.sample_bytes;
    uint64_t last = LOAD_RELAXED(&runtime.space.header->sample_bytes);
    return last != 0 ? last : mean != 0 ? mean : DEFAULT_MEAN;
}

int switch_is_on(void) {
    uintptr_t gate = LOAD_RELAXED(&runtime.gate);
    return gate == GATE_OPEN || gate == GATE_SAMPLED || gate == GATE_JOINING;
}

void switch_on(void) {
    if (LOAD_RELAXED(&runtime.gate) == GATE_STOPPED) {
        switch_want(1);
    }
}

void switch_off(void) {
    if (switch_is_on()) {
        switch_want(0);
    }
}

void switch_sample(uint64_t mean) {
    switch_set_mean(mean);
    if (switch_is_on()) {
        switch_want(1);
    }
}

void switch_to(enum memtrace_mode mode, uint64_t mean) {
    if (mode == MEMTRACE_MODE_OFF) {
        switch_off();
    } else if (mode == MEMTRACE_MODE_ON) {
        switch_on();
    } else {
        switch_sample(mode == MEMTRACE_MODE_EXACT ? 0 : mean != 0 ? mean : switch_last_mean());
        switch_on();
    }
}

COLD void switch_asked(uint64_t control) {
    struct memtrace_header *header = runtime.space.header;
    uint64_t mean = control & ((UINT64_C(1) << MEMTRACE_CONTROL_MEAN_BITS) - 1);
    uint32_t mode = control >> MEMTRACE_CONTROL_MODE_SHIFT & 15;
    uint64_t done = LOAD_RELAXED(&header->control_done);
    if (control != done && /* one thread does it */
        __atomic_compare_exchange_n(&header->control_done, &done, control, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        if (mode <= MEMTRACE_MODE_ON) {
            switch_to(mode, mean);
        }
        recording_switch_ask();
    }
}

void switch_start(const struct settings *settings) {
    int is_recorded = settings->recording.state != MEMTRACE_RECORD_NONE;
    runtime.sample_bytes = is_recorded ? 0 : settings->recording.sample_bytes;
    runtime.gate = settings->starts_off ? GATE_STOPPED : switch_gate_on();
    switch_prepare(runtime.gate);
    switch_describe();
}

void switch_snapshot(int now) {
    struct memtrace_header *header = runtime.space.header;
    int saved = errno;
    child_grow();
    switch_mark(MEMTRACE_MARK_SNAPSHOT);
    __atomic_fetch_add(&header->snapshot_request, 1, __ATOMIC_RELAXED);
    if (now) {
        thread_pass_through(1);
        runtime_periodic(sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
        thread_pass_through(0);
    }
    errno = saved;
}
