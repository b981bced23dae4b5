/* SPDX-License-Identifier: MIT */
/*
 * check.h: whether a profile or recording keeps a budget, and which code broke it most.
 *
 * Called by cli, in a job, whose are the texts of results; budgets, models and names must live as
 * long as they do.
 */
#ifndef ANALYZE_REPORT_CHECK_H
#define ANALYZE_REPORT_CHECK_H

#include "analyze/filter/selection.h"
#include "analyze/filter/suppressions.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/report/metric.h"

#include <stdio.h>

enum check_kind {
    CHECK_TOTAL,     /* of the whole run */
    CHECK_PER_SCOPE, /* of each instance of a scope: the worst one counts */
    CHECK_GROWTH     /* over a baseline */
};

/* "in function ^parse_" */
struct check_where {
    enum selection_part part;
    bool negative;
    const char *regex;
};

/* One budget: METRIC <= LIMIT. */
struct check_budget {
    enum check_kind kind;
    enum metric metric;
    uint64_t limit;
    double percent; /* CHECK_GROWTH: of the baseline, where is_percent */
    bool is_percent;
    const char
        *scope; /* CHECK_PER_SCOPE: its name; CHECK_TOTAL: only within those; NULL: everywhere */
    const char *baseline; /* CHECK_GROWTH: a file */
    struct check_where *where;
    size_t where_count, where_room;
    const char *text;   /* as it was written */
    const char *origin; /* "budgets.txt:3"; "" on the command line */
};

/* What is looked at. The selection is the check's to change, the caller frees it. */
struct check_subject {
    const struct model *whole;
    struct timeorder_parts parts; /* count 0: a profile */
    const struct names *names;
    struct selection *selection;
    struct suppressions *suppressions; /* what of leaks does not count; NULL: all does */
    const char *source;
    const struct replay_options *options;
};

struct check_result {
    const struct check_budget *budget;
    bool met;
    uint64_t before;    /* CHECK_GROWTH */
    uint64_t value;     /* growth: the value after */
    uint64_t most;      /* what the budget and the tolerance allow; growth: of the value after */
    uint64_t instances; /* CHECK_PER_SCOPE: how many, and what all had together */
    uint64_t sum;
    bool is_estimate; /* of a sample; error: the standard error of value, 0: not known */
    double error;
    /* The code that broke it most; line 0: no place is known; function NULL: nothing is known. */
    uint64_t share; /* how much of it is its; growth: how much it grew */
    const char *function;
    const char *file;
    unsigned line;
    const char *path; /* its call path, a line each frame; NULL: none */
};

/* baseline: of CHECK_GROWTH, else NULL. tolerance: how many percent more than the limit are fine.
 * Ends the job where the budget cannot be checked with this file. */
void check_budget(const struct check_budget *budget, const struct check_subject *subject,
                  const struct check_subject *baseline, double tolerance,
                  struct check_result *result);

/* What is written for people and for other programs. */
enum check_format { CHECK_GCC, CHECK_GITHUB, CHECK_JUNIT, CHECK_JSON };

struct check_report {
    FILE *out;
    const struct check_result *results;
    size_t count;
    const char *source;
    const char *executable;
};

void check_write(const struct check_report *report, enum check_format format);

#endif
