/* SPDX-License-Identifier: MIT */
/*
 * asking.h: a question (ask/question.h) from a command line, its answer with progress on a
 * terminal, and what a person is told beside it.
 *
 * Called by the commands that take filters.
 */
#ifndef CLI_ASKING_H
#define CLI_ASKING_H

#include "ask/answer.h"
#include "cli/cli.h"

/* As answer_open(). */
void asking_open(struct answer *answer, const char *name, const struct question *question);
/* The same where a failure does not end the command. 0, or -1: error is set. */
int asking_try(struct answer *answer, const char *name, const struct question *question,
               struct error *error);

/* Says on stderr what is wrong with the file and what its names lack. */
void asking_note(const struct answer *answer);

#endif
