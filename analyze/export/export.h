/* SPDX-License-Identifier: MIT */
/*
 * export.h: a profile or recording in the formats of other tools: the list of formats, with what
 * each one holds, and a function for each.
 *
 * Called by cli/export and web/server/apiexport, in a job. Everything is written to `out`; whether
 * writing worked the caller asks ferror(). A job is ended where the format needs what this source
 * has not. Whole bytes are written, never rounded; text from outside is escaped as the format wants
 * it.
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

enum exportformat_trait {
    EXPORTFORMAT_COST = 1,   /* holds one cost, or shows one first */
    EXPORTFORMAT_BINARY = 2, /* nothing for terminals */
    EXPORTFORMAT_FILE = 4,   /* no stream: needs a file with a name */
    EXPORTFORMAT_DEPTH = 8,  /* writes each call path whole: a depth bounds it */
    EXPORTFORMAT_SUMS = 16,  /* of the heap, or of pools or mappings in its place */
    EXPORTFORMAT_HEAP = 32   /* of the heap alone */
};

struct exportformat {
    const char *name;
    const char *ending; /* of files that have this format */
    const char *help;
    /* NULL: the page with its data, which web/server/onefile.h writes. */
    void (*write)(const struct export *export);
    unsigned traits; /* enum exportformat_trait */
};

/* The one that a NULL name ends. */
extern const struct exportformat exportformats[];

/* NULL: there is none of that name. */
const struct exportformat *exportformat_named(const char *name);
/* The one with the longest ending that the file's name has. NULL: none. */
const struct exportformat *exportformat_of_file(const char *path);
/* Where filters ask for pools or mappings, and the format has no place of theirs: export->model
 * becomes a model in which they stand for the heap. Ends the job where the format has the heap
 * alone. */
void exportformat_choose(const struct exportformat *format, const struct selection *selection,
                         struct export *export);

/* ---- One for each format; where nothing else is said, of the one cost ---- */

void export_csv(const struct export *export);
void export_json(const struct export *export);
void export_flamegraph(const struct export *export);
void export_folded(const struct export *export);
void export_gprof2dot(const struct export *export);
void export_speedscope(const struct export *export); /* all costs */
/* All five costs as events, the chosen one first. */
void export_callgrind(const struct export *export);
/* The profile.proto of pprof, gzip'd. */
void export_pprof(const struct export *export);
void export_massif(const struct export *export);
/* Events in order, as heaptrack writes them. By its name gzip'd (.gz), plain (neither .zst nor .gz)
 * or zstd. */
void export_heaptrack(const struct export *export);
/* The allocations alone, to be repeated: docs/replay.md. */
void export_replay(const struct export *export);
/* All tables of a query, in a database of its own: needs `path`. */
void export_sqlite(const struct export *export);

#endif
