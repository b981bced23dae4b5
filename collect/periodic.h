/* SPDX-License-Identifier: MIT */
/*
 * periodic.h: when the next periodic report is due, and the report itself.
 *
 * Called by collect/collector. Belongs to one thread.
 */
#ifndef COLLECT_PERIODIC_H
#define COLLECT_PERIODIC_H

#include "analyze/model/model.h"
#include "analyze/symbol/symbol.h"

/* What the report's header line and the question "is one due?" need. */
struct periodic_moment {
    uint64_t time_ns;     /* since the program's start */
    uint64_t churn_bytes; /* allocated plus freed since the program's start */
    uint64_t requests;    /* header.snapshot_request */
    uint64_t resident_bytes;
};

struct periodic {
    uint64_t every_ns; /* 0: not by time */
    uint64_t churn_limit_bytes;
    size_t top;
    uint64_t next_ns;     /* every_ns != 0: when the next one is due */
    uint64_t churn_bytes; /* at the last report */
    uint64_t requests;    /* served */
    unsigned long number; /* reports so far */
    struct model *previous;
    struct symbolizer *symbolizer; /* opened by the first report */
};

/* Takes the settings from the header. */
void periodic_start(struct periodic *periodic, const struct memtrace_header *header);

/* By time, by churn, or because the program asked (memtrace_snapshot). */
bool periodic_due(const struct periodic *periodic, const struct periodic_moment *moment);

/* The text of the report, NULL if out of memory; the caller frees it. Takes the model over. */
char *periodic_report(struct periodic *periodic, const struct periodic_moment *moment,
                      struct model *model);

void periodic_end(struct periodic *periodic);

#endif
