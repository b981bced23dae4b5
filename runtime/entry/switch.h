/* SPDX-License-Identifier: MIT */
/*
 * switch.h: counting on and off while the program runs: by the API, by a signal, from the start.
 * Blocks allocated while it is off stay out for good; frees of those from before are still counted.
 * Handler-safe.
 */
#ifndef RUNTIME_ENTRY_SWITCH_H
#define RUNTIME_ENTRY_SWITCH_H

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
