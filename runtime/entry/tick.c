/* SPDX-License-Identifier: MIT */
/* tick.c: a thread looks at the clock, and what is done now and then, by who looks at it. Called by
 * events. See thread.h. */
#include "runtime/entry/thread.h"

#include "runtime/base/sys.h"
#include "runtime/entry/recording_switch.h"
#include "runtime/entry/switch.h"

enum { TELL_NS = 500 * 1000 };

void tick_tell_churn(struct thread *thread, uint64_t least) {
    uint64_t churn = tick_churn(thread->counts);
    uint64_t fresh = churn - thread->churn_told;
    if (fresh >= least) {
        __atomic_fetch_add(&runtime.space.header->churn_bytes, fresh, __ATOMIC_RELAXED);
        thread->churn_told = churn;
    }
}

static uint32_t tick_at(uint64_t monotonic_ns) {
    return (uint32_t)((monotonic_ns - runtime.space.header->birth_zero_ns) >> MEMTRACE_TICK_SHIFT);
}

uint32_t tick_now(void) {
    return tick_at(sys_clock_ns(CLOCK_MONOTONIC));
}

void tick_ask(struct thread *thread) {
    thread_set_clock(thread, ~*thread->clock_word);
}

static void tick_tell(struct thread *thread, uint64_t time_ns) {
    thread->told_ns = time_ns;
    if (thread->stream != NULL) {
        recorder_set_time(thread->stream, time_ns, thread->tick);
    }
    STORE_RELAXED(&runtime.space.header->clock_ns, time_ns);
    tick_tell_churn(thread, MEMTRACE_PAGE_SIZE);
    runtime_periodic(time_ns);
}

/* Where each event looks at the clock (clock_unknown), few have anything to tell. */
COLD uint64_t tick_slow(struct thread *thread) {
    uint32_t before = thread->tick;
    uint64_t now_ns;
    uint64_t time_ns;
    thread_set_clock(thread, clock_seen(thread->clock_word));
    now_ns = sys_clock_ns(CLOCK_MONOTONIC);
    time_ns = now_ns - runtime.space.header->start_monotonic_ns;
    thread_set_tick(thread, tick_at(now_ns));
    if (thread->tick != before) {
        peak_flush(&thread->peak, runtime.space.header);
    }
    if (thread->tick != before || time_ns - thread->told_ns >= TELL_NS) {
        tick_tell(thread, time_ns);
    }
    switch_poll();
    if (UNLIKELY(runtime.space.is_private)) { /* a light child asks whether it is to grow */
        thread->is_noted = thread->is_special = 1;
    }
    if (UNLIKELY(recording_switch_is_due(thread))) {
        recording_switch_step(thread);
    }
    if (UNLIKELY(switch_has_to_tell())) {
        switch_tell(thread);
    }
    return time_ns;
}
