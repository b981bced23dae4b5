/* SPDX-License-Identifier: MIT */
/*
 * findings.h: what looks wrong with a program's memory, the gravest first, each with a sentence and
 * with what shows more of it.
 *
 * Called by report_findings() and web/server. Any thread, each with its own.
 */
#ifndef ANALYZE_REPORT_FINDINGS_H
#define ANALYZE_REPORT_FINDINGS_H

#include "analyze/filter/selection.h"
#include "analyze/report/metric.h"

enum finding_kind {
    FINDING_LEAK,   /* never freed */
    FINDING_GROWTH, /* held, and more and more of it */
    FINDING_TEMPORARY,
    FINDING_SLACK,         /* what blocks take beyond what was asked for */
    FINDING_PINNED,        /* a few blocks keep many pages */
    FINDING_REALLOC,       /* blocks that are reallocated again and again */
    FINDING_FOREIGN,       /* frees of other threads' blocks */
    FINDING_PEAK,          /* who holds most of the peak */
    FINDING_FRAGMENTATION, /* resident, and not in use */
    FINDING_KINDS
};

struct finding {
    enum finding_kind kind;
    double weight; /* they are sorted by it */
    const char *title;
    const char *sentence;
    const char *view;    /* of the page: "flame?metric=leaked&path=..." */
    const char *options; /* of `memtrace report`: "--show-leaked --paths --path ..." */
    uint64_t bytes;      /* 0: it is not about bytes */
    uint64_t count;      /* 0: nor about a number of things */
    double share;        /* 0 to 1; below 0: of nothing */
    uint64_t hash;       /* of the only call path that is meant; 0: there are several */
};

struct findings {
    struct finding *items;
    size_t count;
    size_t room;
};

struct findings_wish {
    const struct report *report;       /* model, names, parts, suppressions */
    const struct model *whole;         /* of which report->model is a part */
    const struct selection *selection; /* which part */
    bool has_passes; /* also what takes passes over all events; else only over few events */
    const struct replay_options *replay;
};

/* In a job, which ends where it is cancelled. */
void findings_make(struct findings *findings, const struct findings_wish *wish);

/* "leak", "growth", ... */
const char *findings_kind_name(enum finding_kind kind);

/* "memtrace report FILE --show-...", of the report's source and part. */
const char *findings_command(const struct report *report, const struct finding *finding);

/* ---- For the files that find: findings.c, findingsums.c, findingsheld.c ---- */

/* Appends. Texts belong to the job. */
void findings_add(struct findings *findings, struct finding finding);

static inline double finding_share(uint64_t part, uint64_t whole) {
    return whole != 0 ? (double)part / (double)whole : 0;
}

/* Code that is to blame for some call paths: the innermost function of the program's own. */
struct culprit {
    const struct names_frame *frame; /* NULL: no code is known */
    struct cost cost;                /* of these paths */
    size_t paths;
    bool is_one_line;   /* all of them allocate at the same line of it */
    uint32_t *contexts; /* ids of the paths, `paths` many; the dearest first */
    uint64_t dearest;   /* its cost */
    size_t room;
};

/* All that bear some of the metric in the model, the dearest first. */
struct culprit *culprits_make(const struct report *report, const struct model *model,
                              enum metric metric, size_t *count);
/* What its paths bear of the metric in a model, be it another one than they were found in. */
uint64_t culprit_cost(const struct culprit *culprit, const struct model *model, enum metric metric);

/* "Archive::add", and with its line "Archive::add at newsdesk.cpp:87". Returns the buffer. */
enum { CULPRIT_NAME = 400 };
const char *culprit_name(const struct report *report, const struct culprit *culprit, char *buffer);
const char *culprit_place(const struct report *report, const struct culprit *culprit, char *buffer);

/* Which paths these are, as the finding says: its view ("flame?metric=..." with the filter behind
 * it), options ("--show-..." likewise) and hash. */
void culprit_show(struct finding *finding, const struct report *report,
                  const struct culprit *culprit, const char *view, const char *options);

/* When the program began to end; UINT64_MAX: it did not. */
uint64_t findings_shutdown_ns(const struct model *model);

/* findingsheld.c: what is held, and whether it grows. */
void findings_of_held(struct findings *findings, const struct findings_wish *wish);
/* findingsums.c: what sums and slices tell, and what takes passes. */
void findings_of_sums(struct findings *findings, const struct findings_wish *wish);

#endif
