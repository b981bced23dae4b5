/* SPDX-License-Identifier: MIT */
/*
 * recording_switch.h: a recording that begins and ends in the middle of a run, as recording.state
 * in the region's header asks (memtrace/events.h; `memtrace control PID record`, `R` in `memtrace
 * top`). The profile goes on as before.
 *
 * Each thread gets a stream at its next event, since its gate says so. When each has been outside
 * of the events that had begun before, the blocks that are there get numbers and are written down
 * as there before. At the end each thread leaves its stream in the same way; then no block has a
 * number any more.
 */
#ifndef RUNTIME_ENTRY_RECORDING_SWITCH_H
#define RUNTIME_ENTRY_RECORDING_SWITCH_H

#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"

extern HIDDEN uint32_t recording_switch_waits; /* there is something to be done at the next tick */

/* Threads are to get streams, or to leave them, at their next event. */
int recording_switch_is_moving(void);
/* Somebody asked: the next tick looks. */
void recording_switch_ask(void);
/* In a forked child, and where all is set up anew. */
void recording_switch_fork(void);

/* At a tick, inside an event. */
INLINE int recording_switch_is_due(const struct thread *thread) {
    return LOAD_RELAXED(&recording_switch_waits) != 0 ||
           thread->generation != LOAD_RELAXED(&runtime.recorder.generation);
}
void recording_switch_step(struct thread *thread);

#endif
