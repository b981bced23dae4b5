/* SPDX-License-Identifier: MIT */
/* switch.c: the gate of the process. See switch.h. */
#include "runtime/entry/switch.h"

#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"

#include <errno.h>

int switch_is_on(void) {
    return LOAD_RELAXED(&runtime.gate) == GATE_OPEN;
}

/* --- marks: what was switched is told in the recording ---------------------------------------- */

/* Bit m: mark m is due. A handler that interrupted the runtime leaves it to the event it did. */
static uint32_t due;

static void mark(enum memtrace_mark what) {
    if (runtime.recorder.recording == NULL || LOAD_RELAXED(&runtime.state) != RUNTIME_READY) {
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

/* Not where the process is past its end, or never began. 1: it was `from`. */
static int move_gate(uintptr_t from, uintptr_t to) {
    return __atomic_compare_exchange_n(&runtime.gate, &from, to, 0, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

void switch_on(void) {
    if (move_gate(GATE_STOPPED, GATE_OPEN)) {
        thread_start_self();
        mark(MEMTRACE_MARK_ON);
    }
}

void switch_off(void) {
    if (move_gate(GATE_OPEN, GATE_STOPPED)) {
        mark(MEMTRACE_MARK_OFF);
        thread_stop_all();
    }
}

void switch_snapshot(int now) {
    struct memtrace_header *header = runtime.space.header;
    int saved = errno;
    child_grow();
    mark(MEMTRACE_MARK_SNAPSHOT);
    __atomic_fetch_add(&header->snapshot_request, 1, __ATOMIC_RELAXED);
    if (now) {
        thread_pass_through(1);
        runtime_periodic(sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
        thread_pass_through(0);
    }
    errno = saved;
}
