/* SPDX-License-Identifier: MIT */
/*
 * question.h: a question: of which file, which process of a run, which part of it, which leaks not;
 * and what answers it: the model of that part with its names.
 *
 * It is put together from options (option.h), by whatever they came, and can be spelled as options
 * again (filters_text()). Nothing is printed here. Called by the commands that take filters.
 */
#ifndef ANALYZE_ASK_QUESTION_H
#define ANALYZE_ASK_QUESTION_H

#include "analyze/ask/filters.h"
#include "analyze/ask/source.h"
#include "analyze/ask/suppressing.h"
#include "analyze/replay/options.h"

/* The options of all questions; keys from QUESTION_KEYS on go to question_take(). Who takes them
 * has filter_options in its table as well, and suppressing_options where it knows leaks. */
enum {
    QUESTION_KEYS = 880,
    QUESTION_DEBUG_FOLDERS = QUESTION_KEYS,
    QUESTION_NO_CACHE,
    QUESTION_PROCESS,
    QUESTION_ALL_PROCESSES
};
extern const struct option question_options[]; /* which process, names, cache */

struct question {
    struct source_choice choice; /* of the processes of a run */
    const char *debug_folders;
    struct filters *filters; /* NULL: none */
    bool no_cache;           /* nothing is kept on disk for the next one */
    bool has_leaks;          /* the suppressions are wanted */
    struct suppressing suppressing;
};

/* Adds an option with its value (NULL: it takes none), which must live as long as the question. 0,
 * or -1: error says what is wrong with it. */
int question_take(struct question *question, const struct option *option, const char *value,
                  struct error *error);

struct answer {
    struct source source;
    struct names *names;
    struct filtered filtered; /* what the filters chose of it */
    struct suppressions suppressions;
};

/* Who wants to know how far it is: NULL functions are not called. */
struct answer_progress {
    struct replay_options replay;
    void (*symbols)(void *context, size_t done, size_t total);
};

/* name as for source_open(). 0, or -1: error is set, and nothing is open. */
int answer_open(struct answer *answer, const char *name, const struct question *question,
                const struct answer_progress *progress, struct error *error);
void answer_close(struct answer *answer);

#endif
