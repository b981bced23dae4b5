/* SPDX-License-Identifier: MIT */
/*
 * answer.h: a question: of which file, which process of a run, which part of it, which leaks not;
 * what answers it: the file that is meant, open, with its names, and the model of what is selected
 * of it; and a report made of that, which only needs to be written. Commands, the server and a
 * saved page have the same.
 *
 * A question is put together from options (option.h), by whatever they came, and can be spelled as
 * options again (filters.text). An answer and its report belong to the job that opens them, and
 * what cannot be opened ends that job. Nothing is printed. Immutable once it is open, but for the
 * counts of suppressions.
 */
#ifndef ASK_ANSWER_H
#define ASK_ANSWER_H

#include "analyze/blocks/activity.h"
#include "analyze/filter/suppressions.h"
#include "analyze/replay/options.h"
#include "analyze/report/findings.h"
#include "analyze/report/reports.h"
#include "ask/filters.h"
#include "ask/source.h"

/* ---- Questions ---- */

/* Which leaks not to tell. Start from {0}. */
enum { SUPPRESSING_FILES = 64 };
struct suppressing {
    const char *files[SUPPRESSING_FILES];
    size_t count;
    bool no_builtin;
    bool no_embedded;
};

/* Start from {0}. Who takes questions has these tables as parts of its own: question_options of the
 * member, suppressing_options of question.suppressing where it knows leaks, filter_options of
 * question.filters. */
struct question {
    struct source_choice choice; /* of the processes of a run */
    const char *debug_folders;
    struct filters filters;
    bool has_leaks; /* the suppressions are wanted */
    struct suppressing suppressing;
};
extern const struct option question_options[]; /* which process, names, cache */
extern const struct option root_options[];     /* --root alone, for all that this process reads */
extern const struct option debuginfod_options[];
extern const struct option suppressing_options[];
/* Whether it asks for a part: of the processes of a run, or by filters. */
bool question_narrows(const struct question *question);

/* Suppressions of files first, then the program's own, then the built-in list. Of the job. */
struct suppressions *question_suppressions(const struct question *question,
                                           const struct model *model);

/* ---- Answers ---- */

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

/* ---- Reports ---- */

/* Reports that are no metric's. */
enum report_show {
    SHOW_FINDINGS,
    SHOW_GROUPS,
    SHOW_LIFETIMES,
    SHOW_SIZES,
    SHOW_BLOCKS,
    SHOW_FRAGMENTATION,
    SHOW_MAPPINGS,
    SHOW_POOLS,
    SHOW_TIMELINE,
    SHOW_MARKS,
    SHOW_THREADS,
    SHOW_PROCESSES,
    SHOW_COUNT
};

/* What is asked of an answer. Start from {0}. */
struct report_wish {
    struct report_options options;
    bool limit_given; /* options.limit was said by somebody, so it holds for single blocks, too */
    bool metrics[METRIC_ALL];
    bool shows[SHOW_COUNT];
    const char *callers_of;  /* whose callers and callees; NULL: nobody's */
    const char *shutdown_at; /* NULL: after the last allocation */
    uint64_t short_ns;
    enum detail_order block_order;
    unsigned timeline_series; /* bits of enum activity_series; 0: the usual ones */
    size_t processes;         /* lines of a run's tree of processes; 0: all */
};

/* Whether the report of some metric is asked for. */
bool reportmaking_has_metric(const struct report_wish *wish);
/* Whether some report is asked for by name: else the usual ones are written. */
bool reportmaking_is_special(const struct report_wish *wish);
/* Whether all there is is asked for, as programs read it. */
bool reportmaking_is_everything(const struct report_wish *wish);

/* All but where it goes. Belongs to the job, as the answer, which has to stay open; what cannot be
 * answered ends the job. */
struct report *reportmaking_open(const struct answer *answer, const struct report_wish *wish,
                                 const struct replay_options *replay);

#endif
