/* SPDX-License-Identifier: MIT */
/*
 * report.h: a model as text for people, as JSON and as CSV for programs.
 *
 * Called by cli and collect. Everything is written to `out`; whether writing worked the caller asks
 * ferror(). Functions return 0, or -1: out of memory.
 */
#ifndef ANALYZE_REPORT_REPORT_H
#define ANALYZE_REPORT_REPORT_H

#include "analyze/blocks/detail.h"
#include "analyze/filter/suppressions.h"
#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "analyze/read/run.h"
#include "analyze/replay/timeorder.h"
#include "analyze/report/metric.h"

#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_MARKDOWN, REPORT_CSV, REPORT_JSON };

struct report_options {
    enum report_format format;
    double min_percent; /* branches and rows below are summed up as one */
    size_t limit;       /* branches of a node, rows of a table, paths; 0: all */
    size_t depth;       /* frames of a path or tree from its start; 0: all */
    size_t table_depth; /* frames of a path in a table for people; 0: all */
    bool bottom_up;     /* trees start at the allocating function */
    bool by_line;       /* lines of a function are told apart */
    bool full_names;    /* C++ names with parameters, template arguments and return types */
    bool all_frames;    /* what the system runs before main, too */
    bool nodes;         /* JSON of everything: the tree of call paths, each node once */
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

/* Which run the model is a part of. */
struct report_run {
    const struct run *run;
    size_t chosen; /* the process whose model it is; RUN_NONE: the sum of all */
    size_t limit;  /* processes in the tree; 0: all */
};

struct report {
    FILE *out;
    struct table_document *document; /* table.h; NULL: REPORT_TEXT needs none */
    const struct model *model;
    const struct names *names;
    struct report_options options;
    const char *source;   /* the file or the process, as the user named it */
    const char *selected; /* which part of it, as options; NULL: everything */
    struct report_definitions definitions;
    const struct detail *detail; /* what single blocks tell; NULL: a profile, or not gathered */
    const struct report_holes *holes;  /* what fragmentation is shown of; NULL: of the view's end */
    struct timeorder_parts parts;      /* the recording; count 0: a profile */
    struct suppressions *suppressions; /* leaks not to tell; NULL: none */
    const struct report_run *run;      /* NULL: the file stands for itself */
};

/* "Leaked: never freed", or in a view of some time "Live at 1.5 s". Returns the buffer's text. */
struct report_title {
    char text[200];
};
const char *report_title(const struct report *report, enum metric metric,
                         struct report_title *buffer);
/* "leaked", "live now" or "live then" */
const char *report_held(const struct model *model);
static inline bool report_is_for_people(const struct report *report) {
    return report->options.format == REPORT_TEXT || report->options.format == REPORT_MARKDOWN;
}

void report_summary(const struct report *report);
/* The processes of a run as a tree, and what all of them held. -1: out of memory. */
int report_run(const struct report *report);
/* A line: which process of the run the rest is about. */
void report_run_chosen(const struct report *report);
/* A row for each process of the run, or for each forked child of the profile. */
void report_processes(const struct report *report);
struct jsonwriter;
/* The run as a member of an object. */
void report_run_json(const struct report *report, struct jsonwriter *json);
void report_warnings(const struct report *report);
/* A line that says which part of the file this is about, if it is a part. */
void report_selected(const struct report *report);
int report_paths(const struct report *report, enum metric metric);
/* In the forms for programs a tree is a list of its calls, each with its depth, callers first. */
int report_tree(const struct report *report, enum metric metric);
int report_flat(const struct report *report, enum metric metric);
/* The functions of this name, or, where that is NULL, whose names match. */
struct callers_of {
    const char *text; /* as the user wrote it */
    const char *function;
    const regex_t *regex;
};
int report_callers(const struct report *report, enum metric metric, const struct callers_of *of);
int report_threads(const struct report *report);
int report_lifetimes(const struct report *report);
int report_sizes(const struct report *report);
int report_groups(const struct report *report);
int report_blocks(const struct report *report);
int report_fragmentation(const struct report *report);
/* The first of its tables and who keeps the pages, for the usual report. */
int report_fragmentation_brief(const struct report *report);
int report_mappings(const struct report *report);
int report_timeline(const struct report *report);
/* What the last suppressions_apply() left out. */
void report_suppressed(const struct report *report);
void report_marks(const struct report *report);
/* Whether so many allocations are temporary that they are worth a section of the usual report. */
bool report_has_much_temporary(const struct model *model);
/* The commands that answer what the usual report leaves open. */
int report_next(const struct report *report);
int report_json(const struct report *report);
int report_csv(const struct report *report);

/* Before these two: where the frames of all call paths would be more than 100 MB, and neither
 * options.depth nor options.nodes bounds them, -1, and error says so with their number. */
int report_refuse_bulk(const struct report *report, struct error *error);

#endif
