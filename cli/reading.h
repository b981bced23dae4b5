/* SPDX-License-Identifier: MIT */
/*
 * reading.h: what commands that read files share: a line on stderr that says how far long work is,
 * where somebody watches; the answer to a question (ask/answer.h) of a command line, and what a
 * person is told beside it.
 *
 * Called by the commands that read large files.
 */
#ifndef CLI_READING_H
#define CLI_READING_H

#include "ask/answer.h"
#include "cli/cli.h"

/* Whether stderr is a terminal. */
bool reading_is_watched(void);
/* "memtrace: WHAT, 12 of 40 ..."; the line goes when all is done. */
void reading_show(const char *what, uint64_t done, uint64_t total);
/* For replay_options, lives_visit() and the like: options with such a line if it is wanted. */
struct replay_options reading_replay(void);
/* For source_names(): reading_is_watched() ? reading_symbols : NULL */
void reading_symbols(void *context, size_t done, size_t total);
/* Debug information may be fetched from servers (debuginfod.h), with such a line. */
void reading_allow_fetching(void);

/* As answer_open(). */
void reading_open(struct answer *answer, const char *name, const struct question *question);
/* Says on stderr what is wrong with the file and what its names lack. */
void reading_note(const struct answer *answer);

#endif
