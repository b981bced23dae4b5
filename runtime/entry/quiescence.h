/* SPDX-License-Identifier: MIT */
/*
 * quiescence.h: when has each other thread been outside of the runtime? After its end, in a program
 * that goes on, nobody begins an event: so its memory can be given back (attach.c). Where a
 * recording begins or ends, each thread begins its next event anew: so all that began before are
 * over (recording_switch.c).
 */
#ifndef RUNTIME_ENTRY_QUIESCENCE_H
#define RUNTIME_ENTRY_QUIESCENCE_H

#include <stdint.h>

struct waiting;

/* All zeros before. */
struct quiescence {
    struct waiting *thread; /* those that were there */
    uint32_t count;
    uint32_t is_whole; /* 0: /proc could not be read, or there are too many threads */
    uint32_t are_outside;
    uint64_t began_ns;
};

void quiescence_begin(struct quiescence *quiet);
/* Whether all have been outside since; also in an event of the calling thread. */
int quiescence_is(struct quiescence *quiet);
uint64_t quiescence_passed_ns(const struct quiescence *quiet);
void quiescence_end(struct quiescence *quiet);

/* Waits for that, for so long at most. 1: so it is; 0: some thread has not run since, or /proc
 * cannot be read. */
int quiescence_wait(uint64_t limit_ns);

#endif
