/* SPDX-License-Identifier: MIT */
/*
 * quiet.h: after the runtime's end, in a program that goes on: when is no thread inside it any
 * more, so that its memory can be given back? Called by attach.c.
 */
#ifndef RUNTIME_ENTRY_QUIET_H
#define RUNTIME_ENTRY_QUIET_H

#include <stdint.h>

/* Waits until every other thread has been outside, for so long at most. 1: it has; 0: some thread
 * has not run since, or /proc cannot be read. The runtime is off: nobody begins an event. */
int quiet_wait(uint64_t limit_ns);

#endif
