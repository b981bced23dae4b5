/* SPDX-License-Identifier: MIT */
/*
 * diff.h: what changed from one model to another, call path by call path, whether they are of two
 * runs of one program or of two builds of it.
 *
 * Called by cli. What was not recorded alike (other addresses, other lines, other inlining) is
 * matched as diffmatch.h tells: a call path is known by its functions, and call sites of
 * the same function by their lines and the order they stand in.
 *
 * Invariant: for every metric, the sum over all rows of (b - a) is the change of the totals.
 */
#ifndef ANALYZE_REPORT_DIFF_H
#define ANALYZE_REPORT_DIFF_H

#include "analyze/filter/suppressions.h"
#include "analyze/model/model.h"
#include "analyze/report/reports.h"

enum diff_by { DIFF_BY_PATH, DIFF_BY_FUNCTION, DIFF_BY_FILE, DIFF_BY_MODULE };

/* Lines of one function may be so far apart. */
#define DIFF_ANY_LINE UINT32_MAX

/* The two that are compared: 0, the earlier, and 1, the later. */
struct diff_side {
    const struct model *model;
    const struct names *names;
    const char *source;
    const char *selected;              /* of it, as options; NULL: nothing to be told */
    struct suppressions *suppressions; /* what of leaks does not count; NULL: all does */
};

struct diff_options {
    enum diff_by by;
    uint32_t line_tolerance;
};

struct diff_costs {
    uint64_t of[METRIC_COUNT];
};

/* What both sides spent in the same place. */
struct diff_row {
    struct diff_costs costs[2];
    uint32_t contexts[2]; /* the dearest context of each side; 0: none */
    bool present[2];
};

struct diff {
    struct diff_side sides[2]; /* model: without what is suppressed */
    bool is_applied[2];        /* that was left out of it */
    enum diff_by by;
    struct diff_costs totals[2];
    struct diff_row *rows; /* what is the same in every metric is left out */
    size_t row_count;
    size_t same_count; /* how many that were */
};

/* Only the heap counts. */
struct diff diff_make(const struct diff_side sides[2], const struct diff_options *options);

/* Which functions of the two sides are the same, whatever their builds: the same number, from 1 on.
 * Within one job. */
struct diff_functions *diff_functions_open(const struct diff_side sides[2]);
uint32_t diff_function(struct diff_functions *functions, const struct names_frame *frame);

/* How much a row or the totals grew. */
int64_t diff_change(const struct diff_costs costs[2], enum metric metric);

/* The rows by growth in this metric: what grew most first, what shrank most last; those that did
 * not change are at the end of neither: they follow the growing ones. */
void diff_sort(struct diff *diff, enum metric metric);

/* The frame that names a row: of the later side if it is there. NULL: no call path was recorded. */
const struct names_frame *diff_frame(const struct diff *diff, const struct diff_row *row);

/* The report that walks over a row's path (pathwalk), and the node where it begins. */
uint32_t diff_path(const struct diff *diff, const struct diff_row *row, struct report *report);

/* What to show. */
struct diff_view {
    FILE *out;
    bool metrics[METRIC_COUNT]; /* those with a table of their own */
    size_t limit;               /* rows of what grew, and of what shrank; 0: all */
    uint64_t least;             /* smaller changes are summed up */
    size_t depth;               /* frames of a path; 0: all */
    struct report_options style;
};

/* As style.format says; sorts the rows. Text and Markdown: the totals, then a table for each of the
 * view's metrics; JSON and CSV: all rows and metrics, by the first of them. */
void diff_write(struct diff *diff, const struct diff_view *view);

#endif
