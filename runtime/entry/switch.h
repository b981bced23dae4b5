/* SPDX-License-Identifier: MIT */
/*
 * switch.h: what is counted while the program runs, all, a sample or nothing: by the API, by a
 * signal, from the start, or from outside (`memtrace control`, format.h: header.control). Blocks
 * allocated while it is off stay out for good; a block that was counted is freed as it was counted,
 * whatever the mode is then. Where events are recorded it is the recording that is sampled, the
 * profile counts all. Handler-safe.
 */
#ifndef RUNTIME_ENTRY_SWITCH_H
#define RUNTIME_ENTRY_SWITCH_H

#include "memtrace/sampled.h"
#include "runtime/entry/runtime.h"

struct settings;
/* Once, before the first thread counts. */
void switch_start(const struct settings *settings);
/* mean: for MEMTRACE_MODE_SAMPLED; 0: the last one, or the default. */
void switch_to(enum memtrace_mode mode, uint64_t mean);
/* The same, but what is off stays off until it is switched on. */
void switch_sample(uint64_t mean);
/* What the gate is when it is open has changed (recording_switch.c). */
void switch_renew(void);
/* Carries out what was asked from outside, if anything. In an event, or while stopped. */
void switch_asked(uint64_t control);
/* In a forked child: its header tells the mode it was born in. */
void switch_fork(void);

INLINE int switch_is_asked(void) {
    const struct memtrace_header *header = runtime.space.header;
    return UNLIKELY(LOAD_RELAXED(&header->control) != LOAD_RELAXED(&header->control_done));
}

INLINE void switch_poll(void) {
    if (switch_is_asked()) {
        switch_asked(LOAD_RELAXED(&runtime.space.header->control));
    }
}

int switch_is_on(void);
void switch_on(void);
void switch_off(void);
/* A periodic report now, by the collector if there is one, and a mark in the recording. Without a
 * collector the program prints it: `now` 1, or 0 in a handler: at its next allocation. */
void switch_snapshot(int now);

/* Marks that a handler could not write, since it had interrupted the runtime: written by the next
 * thread whose clock is due, inside its event. */
struct thread;
int switch_has_to_tell(void);
void switch_tell(struct thread *thread);

#endif
