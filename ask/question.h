/* SPDX-License-Identifier: MIT */
/*
 * question.h: a question: of which file, which process of a run, which part of it, which leaks not.
 * answer.h is what answers it.
 *
 * It is put together from options (option.h), by whatever they came, and can be spelled as options
 * again (filters.text). Nothing is printed here. Called by the commands that take filters.
 */
#ifndef ASK_QUESTION_H
#define ASK_QUESTION_H

#include "analyze/filter/suppressions.h"
#include "analyze/replay/options.h"
#include "ask/filters.h"
#include "ask/source.h"

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

#endif
