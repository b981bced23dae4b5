/* SPDX-License-Identifier: MIT */
/*
 * reports.h: a model as text for people, as tables and as JSON for programs.
 *
 * Called by cli, ask, web/server and top; by collect only for report_left_out(). In a job.
 * Everything is written to report.out; whether writing worked the caller asks ferror().
 */
#ifndef ANALYZE_REPORT_REPORTS_H
#define ANALYZE_REPORT_REPORTS_H

#include "analyze/report/metric.h"
#include "analyze/rows/report.h"

/* "Leaked: never freed", or in a view of some time "Live at 1.5 s". Returns the buffer's text. */
struct report_title {
    char text[200];
};
const char *report_title(const struct report *report, enum metric metric,
                         struct report_title *buffer);
/* "leaked", "live now" or "live then" */
const char *report_held(const struct model *model);

/* What is leaked, or live now: bytes and blocks that are not suppressed. */
void report_leaked(const struct report *report, uint64_t *bytes, uint64_t *blocks);

void report_summary(const struct report *report);
/* What a kind of loss is for people: enum memtrace_loss. NULL: nothing that is told. */
const char *report_loss(unsigned kind);
/* The processes of a run as a tree, and what all of them held. */
void report_run(const struct report *report);
/* A line: which process of the run the rest is about. */
void report_run_process(const struct report *report);
/* A row for each process of the run, or for each forked child of the profile. */
void report_processes(const struct report *report);
void report_warnings(const struct report *report);
/* A line that says which part of the file this is about, if it is a part. */
void report_selected(const struct report *report);
void report_paths(const struct report *report, enum metric metric);
/* What a tree for people has of branches and of calls in a row, where nobody says otherwise. */
enum { REPORT_TREE_PERCENT = 1, REPORT_TREE_LIMIT = 20, REPORT_TREE_DEPTH = 64 };
/* In the forms for programs a tree is a list of its calls, each with its depth, callers first. */
void report_tree(const struct report *report, enum metric metric);
void report_flat(const struct report *report, enum metric metric);
/* The functions of the program that allocate most often, one line each. */
void report_often(const struct report *report);
/* The functions of this name, or, where that is NULL, whose names match. */
struct callers_of {
    const char *text; /* as the user wrote it */
    const char *function;
    const regex_t *regex;
};
void report_callers(const struct report *report, enum metric metric, const struct callers_of *of);
void report_threads(const struct report *report);
void report_lifetimes(const struct report *report);
/* How long half of the freed blocks of a context lived at most, by a profile's buckets. */
struct table_cell report_median_lifetime(const struct model *model,
                                         const struct model_context *context);
/* Lifetimes of a recording's blocks that are shorter are shown as below that: its clock is no
 * finer. */
uint64_t report_finest_lifetime(const struct model *model);
void report_sizes(const struct report *report);
/* What looks wrong: report.findings. */
void report_findings(const struct report *report);
void report_groups(const struct report *report);
void report_blocks(const struct report *report);
void report_fragmentation(const struct report *report);
/* The first of its tables and who keeps the pages, for the usual report. */
void report_fragmentation_brief(const struct report *report);
void report_mappings(const struct report *report);
/* A row for each pool, with what it holds of the heap and of mappings. */
void report_pools(const struct report *report);
bool report_has_pools(const struct report *report);
/* "heap", "stack", "kernel", "anonymous" or "file", by its name. */
const char *report_mapping_kind(const char *name);
/* What the process had mapped at that time, of report.parts; no mappings: it is not known. */
struct smaps;
const struct smaps *report_smaps(const struct report *report, uint64_t time_ns);
void report_timeline(const struct report *report);
/* "; 71.0 KiB of the C++ library's not counted": what the last suppressions_apply() left out,
 * behind what is leaked. Returns the buffer, with "" where it is nothing. */
enum { REPORT_LEFT_OUT_SIZE = 160 };
const char *report_left_out(const struct suppressions *suppressions,
                            char buffer[static REPORT_LEFT_OUT_SIZE]);
/* A table of it. */
void report_suppressed(const struct report *report);
void report_marks(const struct report *report);
/* Whether so many allocations are temporary that they are worth a section of the usual report, and
 * whether there are so many that who makes them is. */
bool report_has_much_temporary(const struct model *model);
bool report_has_many_allocations(const struct model *model);
/* The commands that answer what the usual report leaves open. is_flat: its trees were tables by
 * function. */
void report_next(const struct report *report, bool is_flat);
void report_json(const struct report *report);
/* "gaps": when events were lost, or "thinned": when not all were recorded, since too many came; an
 * array in the map that is open. */
struct jsonwriter;
void report_json_gaps(struct jsonwriter *json, bool are_thinned, const struct model_gap *gaps,
                      size_t count);
/* "by_pool": an array with a map for each pool; the same. */
void report_json_pools(struct jsonwriter *json, const struct report *report);
void report_csv(const struct report *report);

/* Before these two: where the frames of all call paths would be more than 100 MB, and neither
 * options.depth nor options.nodes bounds them, -1, and error says so with their number. */
int report_refuse_bulk(const struct report *report, struct error *error);

#endif
