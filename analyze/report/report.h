/* SPDX-License-Identifier: MIT */
/*
 * report.h: a model as text for people, as JSON and as CSV for programs.
 *
 * Called by cli and collect. Everything is written to `out`; whether writing worked the caller asks
 * ferror(). Functions return 0, or -1: out of memory.
 */
#ifndef ANALYZE_REPORT_REPORT_H
#define ANALYZE_REPORT_REPORT_H

#include "analyze/model/names.h"
#include "analyze/report/metric.h"

#include <stdio.h>

struct report_options {
    double min_percent; /* branches and rows below are summed up as one */
    size_t limit;       /* branches of a node, rows of a table, paths; 0: all */
    size_t depth;       /* frames of a path or tree from its start; 0: all */
    bool bottom_up;     /* trees start at the allocating function */
    bool by_line;       /* lines of a function are told apart */
    bool full_names;    /* C++ names with parameters, template arguments and return types */
    bool all_frames;    /* what the system runs before main, too */
    bool color;
    bool unicode; /* the terminal can draw lines */
    size_t width; /* of the terminal; 0: no limit */
};

struct report {
    FILE *out;
    const struct model *model;
    const struct names *names;
    struct report_options options;
    const char *source;   /* the file or the process, as the user named it */
    const char *selected; /* which part of it, as options; NULL: everything */
};

void report_summary(const struct report *report);
void report_warnings(const struct report *report);
int report_paths(const struct report *report, enum metric metric);
int report_tree(const struct report *report, enum metric metric);
int report_flat(const struct report *report, enum metric metric);
int report_threads(const struct report *report);
int report_json(const struct report *report);
int report_csv(const struct report *report);

#endif
