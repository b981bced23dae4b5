/* SPDX-License-Identifier: MIT */
/*
 * export.h: a profile or recording in the formats of other tools. One file of this folder for each
 * format; formats.c has the list of them.
 *
 * Called by cli. Everything is written to `out`; whether writing worked the caller asks ferror().
 * Each function returns 0, or -1 with the reason in error: out of memory, or what the format needs
 * and this source has not. Whole bytes are written, never rounded; text from outside is escaped as
 * the format wants it.
 */
#ifndef ANALYZE_EXPORT_EXPORT_H
#define ANALYZE_EXPORT_EXPORT_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/report/metric.h"

#include <stdio.h>

/* The costs there are to choose from: the metrics up to here. */
#define EXPORT_COSTS (METRIC_TEMPORARY + 1)

struct export {
    FILE *out;
    const char *path; /* of out's file, for formats that are no stream (SQLite); NULL: stdout */
    const struct model *model; /* what was selected */
    const struct names *names;
    struct timeorder_parts parts; /* count 0: the source is a profile */
    enum metric cost;             /* where the format holds one cost */
    bool full_names;              /* C++ names with parameters and template arguments */
    bool by_line;    /* lines of a function are told apart, where the format merges call paths */
    bool all_frames; /* what the system runs before main, and each level of a recursion, too */
    /* Where a format writes each call path whole: at most so many frames of it, the innermost, or
     * of trees the calls nearest main; 0: all. If it is not given, 100 MB of frames are refused. */
    size_t depth;
    bool is_depth_given;
    const char *selected; /* the filters, as they were given; NULL: none */
    const char *source;   /* the file or the process, as the user named it */

    /* Of a recording, for formats that hold single events or moments: what the selection was made
     * of, and the selection; NULL: all of it. */
    const struct model *whole;
    const struct selection *selection;
    const struct replay_options *progress; /* of passes over all events; may be NULL */
    /* The name that the file will have, whose end says how it is packed; NULL: standard output. */
    const char *name;
};

int export_csv(const struct export *export, struct error *error);
int export_flamegraph(const struct export *export, struct error *error);
int export_folded(const struct export *export, struct error *error);
int export_gprof2dot(const struct export *export, struct error *error);
int export_json(const struct export *export, struct error *error);

/* All tables of a query, in a database of its own: needs `path`. */
int export_sqlite(const struct export *export, struct error *error);
int export_speedscope(const struct export *export, struct error *error); /* all costs */

/* Events in order, as heaptrack writes them; of a profile events that add up to it. By its name
 * gzip'd (.gz), plain (neither .zst nor .gz) or zstd. */
int export_heaptrack(const struct export *export, struct error *error);
/* The profile.proto of pprof, gzip'd. */
int export_pprof(const struct export *export, struct error *error);
/* The allocations alone, to be repeated: docs/replay.md. */
int export_replay(const struct export *export, struct error *error);
int export_massif(const struct export *export, struct error *error);
/* All five costs as events, the chosen one first. */
int export_callgrind(const struct export *export, struct error *error);

#endif
