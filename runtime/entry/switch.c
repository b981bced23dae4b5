/* SPDX-License-Identifier: MIT */
/* switch.c: the gate of the process. See switch.h. */
#include "runtime/entry/switch.h"

#include "runtime/base/sys.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"

#include <errno.h>

int switch_is_on(void) {
    return LOAD_RELAXED(&runtime.gate) == GATE_OPEN;
}

/* Not where the process is past its end, or never began. 1: it was `from`. */
static int move_gate(uintptr_t from, uintptr_t to) {
    return __atomic_compare_exchange_n(&runtime.gate, &from, to, 0, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

void switch_on(void) {
    if (move_gate(GATE_STOPPED, GATE_OPEN)) {
        thread_start_self();
    }
}

void switch_off(void) {
    if (move_gate(GATE_OPEN, GATE_STOPPED)) {
        thread_stop_self();
    }
}

void switch_snapshot(int now) {
    struct memtrace_header *header = runtime.space.header;
    int saved = errno;
    __atomic_fetch_add(&header->snapshot_request, 1, __ATOMIC_RELAXED);
    if (now) {
        thread_pass_through(1);
        runtime_periodic(sys_clock_ns(CLOCK_MONOTONIC) - header->start_monotonic_ns);
        thread_pass_through(0);
    }
    errno = saved;
}
