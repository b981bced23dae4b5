/* SPDX-License-Identifier: MIT */
/*
 * periodic.h: the periodic report of a program that runs: the call paths that hold the most live
 * memory; when the next one is due; and where it goes, stderr or a file that is begun anew when it
 * has grown enough (what it held is then FILE.1).
 *
 * Called by collect/collector. Belongs to one thread.
 */
#ifndef COLLECT_PERIODIC_H
#define COLLECT_PERIODIC_H

#include "analyze/model/model.h"
#include "analyze/symbol/symbol.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- The call paths ---- */

struct topn_row {
    const struct model_context *context; /* of the present model */
    uint64_t interval_bytes;             /* allocated since the previous model */
    uint64_t interval_allocations;
    uint64_t interval_freed_bytes;
    uint64_t interval_frees;
};

/* The `limit` (0: all) paths with the most live bytes, the largest first; of equals the one with
 * more allocated bytes, then the older. Paths without live bytes are left out. `previous` may be
 * NULL: everything happened in this interval. *live: how many paths there were to choose from. The
 * caller frees *rows. 0 or -1 (out of memory). */
int topn_choose(const struct model *now, const struct model *previous, size_t limit,
                struct topn_row **rows, size_t *count, size_t *live);

/* Prints the rows in reverse order, the largest last, each with its path, innermost frame first.
 * symbolizer may be NULL: module+offset only. */
void topn_print(FILE *out, const struct model *model, const struct topn_row *rows, size_t count,
                struct symbolizer *symbolizer);

/* ---- The report ---- */

/* What the report's header line and the question "is one due?" need. */
struct periodic_moment {
    uint64_t time_ns;     /* since the program's start */
    uint64_t churn_bytes; /* allocated plus freed since the program's start */
    uint64_t requests;    /* header.snapshot_request */
    uint64_t resident_bytes;
};

struct periodic {
    uint64_t every_ns; /* 0: not by time */
    uint64_t churn_limit_bytes;
    size_t top;
    uint64_t next_ns;     /* every_ns != 0: when the next one is due */
    uint64_t churn_bytes; /* at the last report */
    uint64_t requests;    /* served */
    unsigned long number; /* reports so far */
    struct model *previous;
    struct symbolizer *symbolizer; /* opened by the first report */
};

/* Takes the settings from the header. */
void periodic_start(struct periodic *periodic, const struct memtrace_header *header);

/* By time, by churn, or because the program asked (memtrace_snapshot). */
bool periodic_due(const struct periodic *periodic, const struct periodic_moment *moment);

/* The text of the report, NULL if out of memory; the caller frees it. Takes the model over. */
char *periodic_report(struct periodic *periodic, const struct periodic_moment *moment,
                      struct model *model);

void periodic_end(struct periodic *periodic);

/* ---- Where it goes ---- */

struct logfile {
    char path[4096];     /* "": stderr */
    uint64_t most_bytes; /* 0: it grows */
    int fd;              /* -1: not opened yet; STDERR_FILENO: instead of a file */
};

/* Opens nothing yet. */
void logfile_start(struct logfile *log, const char *path, uint64_t most_bytes);
/* Where a text of so many bytes goes. Where the file cannot be opened one line says so, and all
 * goes to stderr from then on. */
int logfile_descriptor(struct logfile *log, size_t size);
void logfile_end(struct logfile *log);

#endif
