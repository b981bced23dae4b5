/* SPDX-License-Identifier: MIT */
/*
 * recordevents.h: from the buffers of a region to blocks of events in its recording; where events
 * were lost, gaps; and at its end what the program's own counters say, which go on whatever is
 * lost.
 *
 * Called by collect/record, from one thread at a time.
 */
#ifndef COLLECT_RECORDEVENTS_H
#define COLLECT_RECORDEVENTS_H

#include "analyze/read/eventcode.h"
#include "collect/cull.h"
#include "collect/drain.h"
#include "collect/recordparts.h"
#include "collect/recordthin.h"

struct recordevents {
    const struct claim *claim;
    struct memtrace_recording *recording; /* in the region */
    struct profile *profile;              /* the region, mapped read-only */
    struct drain drain;
    struct recordtables tables;
    struct recordparts parts; /* the files */
    struct event_encoder *encoder;
    struct cull cull;
    struct recordthin thin;
    uint64_t end_ns;              /* what happens later is not recorded */
    uint64_t count;               /* events in the files */
    bool is_ending;               /* what little is left is written, whatever waits to be sent */
    struct drain_place marks_end; /* of the stream of the collector's own marks */
    uint64_t seen_end;            /* all segments below it are known; 0: look anew */
    uint64_t refreshed_ns;        /* CLOCK_MONOTONIC */
    struct error *error;          /* where each of these functions says why it failed */
};

/* Begins the recording, or goes on with it. 0 or -1; then close it as well. */
int recordevents_open(struct recordevents *events, const struct claim *claim, struct error *error);
void recordevents_close(struct recordevents *events);

/* Looks for what was added to the region. 0 or -1. */
int recordevents_refresh(struct recordevents *events);

/* The program's threads wait for free buffers only while this is called, and where too much comes
 * it is thinned from here (recordthin.h). Often. */
void recordevents_beat(struct recordevents *events);

/* How much of the file waits to be sent, where it is freed then: what of it is on the disk. */
uint64_t recordevents_queued(const struct recordevents *events);
/* Whether more may wait: false until some of it was sent. */
bool recordevents_have_room(const struct recordevents *events);

/* Shows all that lies in the buffers since drain_look() to what culls. 0 or -1. */
int recordevents_note(struct recordevents *events, bool ended);

/* Writes a span's events, those after until_ns left for another time. 0 or -1. */
int recordevents_write(struct recordevents *events, const struct drain_span *span,
                       uint64_t until_ns);

/* What lies in the buffers is lost: counts it as that. The program is gone. 0 or -1. */
int recordevents_drop(struct recordevents *events);

/* Writes a mark of the collector's own, in stream 0, which no thread of the program has. 0 or -1.
 */
int recordevents_mark(struct recordevents *events, uint64_t time_ns, const char *text);

/* ---- Gaps ---- */

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
