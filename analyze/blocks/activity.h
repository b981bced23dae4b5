/* SPDX-License-Identifier: MIT */
/*
 * activity.h: what happened over time: how often was allocated and freed in each interval, counted
 * from the events in it, when what was never freed was allocated, and what the kernel said of the
 * process's memory.
 *
 * Called by ask and web/server. Of a whole recording the slices of its index tell the first
 * two, with edges where no slice is cut; of short ones, of windows and where filters are given, and
 * of leaks, all blocks are gone through. A profile has counters at some moments: allocations only.
 */
#ifndef ANALYZE_BLOCKS_ACTIVITY_H
#define ANALYZE_BLOCKS_ACTIVITY_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "memtrace/recording.h"

/* What may be shown of it; sets of these are bits, 1u << series. */
enum activity_series {
    ACTIVITY_LIVE, /* these have a value at each point of the timeline */
    ACTIVITY_RESIDENT,
    ACTIVITY_SWAP,
    ACTIVITY_VIRTUAL,
    ACTIVITY_AT_POINTS,
    ACTIVITY_RATE = ACTIVITY_AT_POINTS, /* and these in each interval */
    ACTIVITY_FREES,
    ACTIVITY_LEAKED,
    ACTIVITY_SERIES
};
#define ACTIVITY_SERIES_NAMES "live,resident,swap,virtual,rate,frees,leaked"
extern const char *const activity_names[ACTIVITY_SERIES];
/* Some of the names, such as "live,rate". 0, or -1: a word is none of them. */
int activity_parse(const char *list, unsigned *series);

/* What has to be looked at for them. */
enum activity_part { ACTIVITY_COUNTS = 1, ACTIVITY_LEAKS = 2, ACTIVITY_PROCESS = 4 };
unsigned activity_parts(unsigned series);

/* edges grow; interval i is [edges[i], edges[i + 1]), of count. */
struct activity {
    uint64_t *edges; /* count + 1; NULL: nothing is known */
    size_t count;
    double *allocations; /* in the interval; of a sample estimates, which need not be whole */
    double *frees;       /* NULL: not known */
    uint64_t *leaked;    /* bytes allocated by its end that live when the view is over, never freed
                            if that is the end; NULL: not known, or not asked for */
    bool is_pass;        /* all blocks were gone through */
    struct memtrace_sample *process; /* by time */
    size_t process_count;
    struct job_memory *memory;
};

/* What is asked, of which model. */
struct activity_wish {
    unsigned parts; /* enum activity_part */
    size_t most;    /* intervals */
    const struct selection *selection;
    const struct model *whole;
    const struct model *model; /* of what is selected */
    struct timeorder_parts recording;
    const struct names *names;
};

/* 0, or -1: out of memory, or cancelled; activity_free() in any case. */
int activity_make(struct activity *activity, const struct activity_wish *wish,
                  const struct replay_options *options, struct error *error);
void activity_free(struct activity *activity);

/* Whether the file tells it: else it was not recorded, not counted, or not asked for. */
bool activity_knows(const struct activity *activity, const struct model *model,
                    enum activity_series series);
/* The interval in which this moment lies; count: in none. */
size_t activity_place(const struct activity *activity, uint64_t time_ns);
/* Per second, in an interval. */
double activity_rate(const struct activity *activity, const double *counts, size_t interval);
/* What the kernel said last before this moment, or first; NULL: nothing. */
const struct memtrace_sample *activity_process(const struct activity *activity, uint64_t time_ns);

#endif
