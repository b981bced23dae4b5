/* SPDX-License-Identifier: MIT */
/*
 * collector.h: what is done beside one running program: its timeline, its periodic reports, and
 * its profile once it is gone.
 *
 * Called by cli/run (the program's parent) and cli/companion. Belongs to one thread. The caller
 * waits and calls collector_tick() when the time it returned has passed.
 */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include "analyze/read/profile.h"
#include "collect/claim.h"
#include "collect/finish.h"
#include "collect/limits.h"
#include "collect/periodic.h"
#include "collect/runwriter.h"
#include "collect/timeline.h"

struct collector {
    struct claim claim;      /* claim.fd -1: not attached */
    struct profile *profile; /* the region, mapped read-only */
    struct memtrace_timeline *timeline;
    uint64_t timeline_size;
    uint64_t next_sample_ns;
    uint64_t next_own_ns;
    uint64_t last_churn;     /* at the last tick */
    unsigned idle_ticks;     /* in which nothing was churned */
    uint64_t resident_bytes; /* last seen */
    uint64_t seen_end;       /* header.end at the last refresh */
    struct periodic periodic;
    struct record *record; /* NULL: no recording */
    uint64_t ending_ns;    /* when it was first seen that its end is wanted; 0: it is not */
    struct limits limits;
    struct logfile log;
    uint64_t seen_bytes;   /* size of the region: it grows only */
    bool is_cut;           /* but somebody made it shorter, which was said */
    struct runwriter *run; /* the run that it belongs to; NULL: none of ours */
};

/* Not attached: what collector_attach and collector_detach start from. */
#define COLLECTOR_NONE ((struct collector){.claim.fd = -1, .log.fd = -1})

/* Claims the region and becomes its collector (header.collector_pid). Only after HELD_OK the
 * collector is attached; the others may pass, so try again. `run`: as in the struct. */
enum claim_status collector_attach(struct collector *collector, const char *path,
                                   struct runwriter *run, struct error *error);

/* The same of a region that was claimed already (`collector->claim`, by claim_outside): released
 * where it fails. */
enum claim_status collector_attach_claimed(struct collector *collector, struct runwriter *run,
                                           struct error *error);

/* Whether there is nothing to do here but to write a recording that began in the middle of the run,
 * if there is one. */
bool collector_only_records(const struct collector *collector);

/* What the program's threads hold now, in bytes; 0 where its region cannot be read. */
uint64_t collector_live_bytes(struct collector *collector);

/* Samples and reports whatever is due. Returns the milliseconds until it should be called again. */
int collector_tick(struct collector *collector);

/* Whether the program has replaced itself by exec or is gone, so that this region is finished. */
bool collector_over(const struct collector *collector);

/* The program is gone: prints a report that was still owed, writes the profile, unlinks the region
 * and detaches. Where the runtime has written the same profile itself (before an exec, or because
 * another collector was expected) that one stays. `is_last`: of its run. Returns the lines for the
 * user (maybe ""), which the caller prints and frees; NULL: out of memory. */
char *collector_finish(struct collector *collector, bool is_last);

/* Lets go of the region as it is. */
void collector_detach(struct collector *collector);

/* Writes all of the text, in one call where the descriptor allows. */
void collector_write(int fd, const char *text);

#endif
