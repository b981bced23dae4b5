/* SPDX-License-Identifier: MIT */
/*
 * recordgap.h: says in a recording when events of it were lost, and at its end what the program's
 * own counters say, which go on whatever is lost.
 *
 * Called by collect/record, from one thread at a time.
 */
#ifndef COLLECT_RECORDGAP_H
#define COLLECT_RECORDGAP_H

#include "collect/recordevents.h"

struct recordgap {
    struct memtrace_gap open;         /* not in the file yet; to_ns 0: there is none */
    uint64_t allocs, frees;           /* lost so far, as the program counts */
    uint64_t told_allocs, told_frees; /* of these, in the file */
    uint64_t looked_ns;
    uint64_t stopped_ns; /* since when nothing is recorded; 0: it goes on */
    bool any;            /* something was lost, by whichever collector */
};

/* What the file says already. */
void recordgap_open(struct recordgap *gap, const struct recordevents *events);

/* Looks whether something was lost since the last look; often, also while nothing is written. */
void recordgap_look(struct recordgap *gap, const struct recordevents *events, uint64_t time_ns);

/* From here on nothing is recorded any more. */
void recordgap_stop(struct recordgap *gap, uint64_t time_ns);

/* Writes a gap that is over, or that has become long, or at the end any. 0 or -1. */
int recordgap_write(struct recordgap *gap, struct recordevents *events, bool ended);

/* The program is gone: writes what it counted, if something was lost or thinned and the counters
 * are of what was to be recorded. 0 or -1. */
int recordgap_write_totals(struct recordgap *gap, struct recordevents *events);

#endif
