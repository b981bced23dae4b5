/* SPDX-License-Identifier: MIT */
/*
 * reportmaking.h: from an answer (answer.h) to a report that only needs to be written: what
 * single blocks tell is gathered, the moment with most holes is found, pools and mappings stand for
 * the heap where filters ask for them.
 *
 * Nothing is printed. Called by cli/report and by whoever else shows reports.
 */
#ifndef ASK_REPORTMAKING_H
#define ASK_REPORTMAKING_H

#include "analyze/blocks/activity.h"
#include "analyze/report/findings.h"
#include "analyze/report/reports.h"
#include "ask/answer.h"

/* Reports that are no metric's. */
enum report_show {
    SHOW_FINDINGS,
    SHOW_GROUPS,
    SHOW_LIFETIMES,
    SHOW_SIZES,
    SHOW_BLOCKS,
    SHOW_FRAGMENTATION,
    SHOW_MAPPINGS,
    SHOW_POOLS,
    SHOW_TIMELINE,
    SHOW_MARKS,
    SHOW_THREADS,
    SHOW_PROCESSES,
    SHOW_COUNT
};

/* What is asked of an answer. Start from {0}. */
struct report_wish {
    struct report_options options;
    bool limit_given; /* options.limit was said by somebody, so it holds for single blocks, too */
    bool metrics[METRIC_ALL];
    bool shows[SHOW_COUNT];
    const char *callers_of;  /* whose callers and callees; NULL: nobody's */
    const char *shutdown_at; /* NULL: after the last allocation */
    uint64_t short_ns;
    enum detail_order block_order;
    unsigned timeline_series; /* bits of enum activity_series; 0: the usual ones */
    size_t processes;         /* lines of a run's tree of processes; 0: all */
};

/* Whether the report of some metric is asked for. */
bool reportmaking_has_metric(const struct report_wish *wish);
/* Whether some report is asked for by name: else the usual ones are written. */
bool reportmaking_is_special(const struct report_wish *wish);
/* Whether all there is is asked for, as programs read it. */
bool reportmaking_is_everything(const struct report_wish *wish);

/* All but where it goes. Belongs to the job, as the answer, which has to stay open; what cannot be
 * answered ends the job. */
struct report *reportmaking_open(const struct answer *answer, const struct report_wish *wish,
                                 const struct replay_options *replay);

#endif
