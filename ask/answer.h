/* SPDX-License-Identifier: MIT */
/*
 * answer.h: what answers a question (question.h): the file that is meant, open, with its names, and
 * the model of what is selected of it. Commands, the server and a saved page have the same.
 *
 * All of it belongs to the job that opens it, and what cannot be opened ends that job. Nothing is
 * printed. Immutable once it is open, but for the counts of suppressions.
 */
#ifndef ASK_ANSWER_H
#define ASK_ANSWER_H

#include "analyze/rows/report.h"
#include "ask/question.h"

struct apicache;

struct answer {
    const struct source *source;
    const struct model *whole; /* the source's */
    const struct model *model; /* of what is selected; may be the same. lacks_sums: but for its
                                  window it is the whole */
    const struct names *names;
    const struct selection *selection;
    const struct question *question;   /* as it was asked; filters.text spells it */
    struct suppressions *suppressions; /* NULL: the question has no leaks */
    struct apicache *cache;            /* of the server: what passes over it gathered: apicache.h */
    bool is_snapped;                   /* the window's edges were moved to those of slices */
    bool lacks_sums;                   /* who asked for single blocks alone goes without them */
};

/* Who wants to know how far it is: NULL functions are not called. */
struct answer_progress {
    struct replay_options replay;
    void (*symbols)(void *context, size_t done, size_t total);
};

/* Opens all of it; the question must live as long. name: as for source_open(). */
void answer_open(struct answer *answer, const char *name, const struct question *question,
                 const struct answer_progress *progress);

/* How far a selection need not be followed. */
enum answer_terms {
    ANSWER_SNAPS = 1 << 0,     /* the window's edges may be moved to those of slices */
    ANSWER_OF_BLOCKS = 1 << 1, /* its sums need not be made */
};

/* What is selected of a source that is open, with names: sets all but the suppressions. */
void answer_select(struct answer *answer, const struct source *source, const struct names *names,
                   const struct question *question, unsigned terms,
                   const struct replay_options *replay);

/* The model in which pools or mappings, where filters ask for them, are the heap: trees, tables and
 * differences are of those. Else answer->model. */
const struct model *answer_counted(const struct answer *answer);

/* The report of it, without options and output. Of the job. processes: lines of a run's tree of
 * processes; 0: all. */
struct report answer_report(const struct answer *answer, size_t processes);

#endif
