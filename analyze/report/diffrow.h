/* SPDX-License-Identifier: MIT */
/* diffrow.h: what the forms of a difference share: names, words, numbers. Used by diff*.c alone. */
#ifndef ANALYZE_REPORT_DIFFROW_H
#define ANALYZE_REPORT_DIFFROW_H

#include "analyze/report/diff.h"
#include "analyze/rows/number.h"

/* "call path", "function", ... */
const char *diffrow_by(enum diff_by by);
/* "new", "gone" or "" */
const char *diffrow_state(const struct diff_row *row);
/* The name of a metric in JSON and CSV: "leaked_bytes" */
const char *diffrow_metric(enum metric metric);
/* What a row is called where it has no path to show: a function, a file, a module. */
const char *diffrow_name(const struct diff *diff, const struct diff_row *row, bool full_names,
                         char *buffer, size_t size);

/* "+1.2 MiB", "-27": bytes or counts, as the metric has them. */
const char *diffrow_change(struct number *number, enum metric metric, int64_t change);
/* "+12.3%"; "" where there was nothing before. */
const char *diffrow_percent(struct number *number, uint64_t before, uint64_t after);
const char *diffrow_amount(struct number *number, enum metric metric, uint64_t amount);

/* A sorted difference by one metric: rows [0, grown) are shown as grown, [shrunk, row_count) as
 * shrunk, most first from the end; what is between is too small, or too much for the limit. */
struct diffrow_range {
    size_t grown;
    size_t shrunk;
    size_t rest;     /* of those between: changed at all */
    int64_t rest_up; /* and by how much */
    int64_t rest_down;
};
struct diffrow_range diffrow_choose(const struct diff *diff, const struct diff_view *view,
                                    enum metric metric);

#endif
