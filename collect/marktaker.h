/* SPDX-License-Identifier: MIT */
/*
 * marktaker.h: the marks that others ask for (markask.h), on their way into the recording.
 *
 * Called by collect/record, from one thread.
 */
#ifndef COLLECT_MARKTAKER_H
#define COLLECT_MARKTAKER_H

#include "collect/recordevents.h"

struct marktaker {
    uint64_t seen; /* so many were there at the last look */
    uint64_t time_ns[MEMTRACE_ASKED_MARKS];
};

/* New ones have this time. */
void marktaker_look(struct marktaker *taker, const struct recordevents *events, uint64_t time_ns);
/* Writes what was there at the last look. 0 or -1. */
int marktaker_write(const struct marktaker *taker, struct recordevents *events);
/* At the end: what could not be written is not for the next recording. */
void marktaker_drop(const struct recordevents *events);

#endif
