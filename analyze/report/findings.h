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
    char *title;
    char *sentence;
    char *view;     /* of the page: "flame?metric=leaked&path=..." */
    char *options;  /* of `memtrace report`: "--show-leaked --paths --path ..." */
    uint64_t bytes; /* 0: it is not about bytes */
    uint64_t count; /* 0: nor about a number of things */
    double share;   /* 0 to 1; below 0: of nothing */
    uint64_t hash;  /* of the only call path that is meant; 0: there are several */
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

/* 0, or -1: out of memory, or cancelled; findings_free() in any case. */
int findings_make(struct findings *findings, const struct findings_wish *wish, struct error *error);
void findings_free(struct findings *findings);

/* "leak", "growth", ... */
const char *findings_kind_name(enum finding_kind kind);

/* "memtrace report FILE --show-...", of the report's source and part. malloc'd; NULL: out of
 * memory.
 */
char *findings_command(const struct report *report, const struct finding *finding);

/* ---- For the files that find: findings.c, findingsums.c, findingsheld.c, findingpasses.c ---- */

/* Appends; texts that are NULL mean that memory is out. 0, or -1: then they are freed. */
int findings_add(struct findings *findings, struct finding finding);

/* Code that is to blame for some call paths: the innermost function of the program's own. */
struct culprit {
    const struct names_frame *frame; /* NULL: no code is known */
    struct cost cost;                /* of these paths */
    size_t paths;
    bool is_one_line;   /* all of them allocate at the same line of it */
    uint32_t *contexts; /* malloc'd: ids of the paths, `paths` many; the dearest first */
    uint64_t dearest;   /* its cost */
    size_t room;
};

/* All that bear some of the metric in the model, the dearest first. The caller frees them. NULL:
 * out of memory. */
struct culprit *culprits_make(const struct report *report, const struct model *model,
                              enum metric metric, size_t *count);
void culprits_free(struct culprit *culprits, size_t count);
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

/* Who allocates for a moment, by how much of it each call path did. */
struct brevity {
    const struct model
        *model;           /* report.model, its contexts' `temporary` being what is meant here */
    uint32_t allocations; /* freed before their thread had made so many more */
    uint64_t within_ns;   /* or, where that is 0, freed within this */
};
int findings_of_brevity(struct findings *findings, const struct findings_wish *wish,
                        const struct brevity *brevity);
/* The same model, but `temporary` of its heap contexts is what count() says, or what it was if
 * that is more. Free with brevity_free(). 0, or -1: out of memory. */
int brevity_model(struct model *brief, const struct model *model,
                  uint64_t (*count)(const void *counts, const struct model_context *context),
                  const void *counts);
void brevity_free(struct model *brief);
/* Whether findings_of_passes() is to make its passes. */
bool findings_have_passes(const struct findings_wish *wish);

/* NULL: out of memory. */
char *findings_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* When the program began to end; UINT64_MAX: it did not. */
uint64_t findings_shutdown_ns(const struct model *model);

/* findingsheld.c: what is held, and whether it grows. 0 or -1. */
int findings_of_held(struct findings *findings, const struct findings_wish *wish,
                     struct error *error);

/* findingsums.c: what sums and slices tell. findingpasses.c: what takes passes. 0 or -1. */
int findings_of_sums(struct findings *findings, const struct findings_wish *wish,
                     struct error *error);
int findings_of_passes(struct findings *findings, const struct findings_wish *wish,
                       struct error *error);

#endif
