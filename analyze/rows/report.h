/* SPDX-License-Identifier: MIT */
/*
 * report.h: what all tables and drawings of one output share: what they are about, where they go
 * and how they are shown.
 *
 * Called by whoever writes a table: analyze/report, analyze/query, analyze/export, cli, collect.
 */
#ifndef ANALYZE_ROWS_REPORT_H
#define ANALYZE_ROWS_REPORT_H

#include "analyze/blocks/detail.h"
#include "analyze/filter/selection.h"
#include "analyze/filter/suppressions.h"
#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "analyze/read/run.h"
#include "analyze/replay/timeorder.h"

#include <stdio.h>

/* REPORT_SINK: nothing is written, report.sink gets the rows. */
enum report_format {
    REPORT_TEXT,
    REPORT_MARKDOWN,
    REPORT_CSV,
    REPORT_JSON,
    REPORT_TSV,
    REPORT_SINK
};
#define REPORT_FORMATS "text|markdown|csv|json" /* those of reports, as options name them */

struct report_options {
    enum report_format format;
    double min_percent; /* branches and rows below are summed up as one */
    size_t limit;       /* branches of a node, rows of a table, paths; 0: all */
    size_t depth;       /* frames of a path or tree from its start; 0: all */
    size_t table_depth; /* frames of a path in a table for people; 0: all */
    size_t path_depth;  /* the same in CSV and TSV; 0: all */
    bool bottom_up;     /* trees start at the allocating function */
    bool by_line;       /* lines of a function are told apart */
    bool full_names;    /* C++ names with parameters, template arguments and return types */
    bool all_frames;    /* what the system runs before main, too */
    bool nodes;         /* JSON of everything: the tree of call paths, each node once */
    bool no_frames;     /* and the frames stand there alone, not in each path, too */
    bool color;
    bool unicode; /* the terminal can draw lines */
    size_t width; /* of the terminal; 0: no limit */
};

/* What some metrics mean is for the user to say. */
struct report_definitions {
    uint64_t shutdown_ns; /* METRIC_SHUTDOWN: freed from then on; UINT64_MAX: after the last
                             allocation */
    uint64_t short_ns;    /* METRIC_SHORT: freed within so long */
};

/* A recording at the moment when its heap had most holes (model/holes.h). */
struct report_holes {
    struct model *model;
    struct detail *detail; /* DETAIL_HEAP */
};

struct table_document;
struct table_sink;
struct findings;
struct activity;

/* Which run the model is a part of. */
struct report_run {
    const struct run *run;
    size_t process; /* the process whose model it is; RUN_NONE: the sum of all */
    size_t limit;   /* processes in the tree; 0: all */
};

struct report {
    FILE *out;
    struct table_document *document; /* table.h; NULL: REPORT_TEXT needs none */
    const struct table_sink *sink;   /* of REPORT_SINK: table.h */
    const struct model *model;
    const struct model *counted; /* whose totals those of everything are; NULL: the model's */
    const struct names *names;
    struct report_options options;
    const char *source;   /* the file or the process, as the user named it */
    const char *selected; /* which part of it, as options; NULL: everything */
    struct report_definitions definitions;
    const struct detail *detail; /* what single blocks tell; NULL: a profile, or not gathered */
    const struct report_holes *holes; /* what fragmentation is shown of; NULL: of the view's end */
    struct timeorder_parts parts;     /* the recording; count 0: a profile */
    const struct selection_mappings *mappings; /* those to show; NULL: all */
    struct suppressions *suppressions;         /* leaks not to tell; NULL: none */
    const struct findings *findings;           /* report/findings.h; NULL: not looked for */
    const struct activity *activity; /* blocks/activity.h, for the timeline; NULL: not counted */
    unsigned timeline_series;        /* bits of enum activity_series; 0: the usual ones */
    const struct report_run *run;    /* NULL: the file stands for itself */
};

static inline bool report_is_for_people(const struct report *report) {
    return report->options.format == REPORT_TEXT || report->options.format == REPORT_MARKDOWN;
}

#endif
