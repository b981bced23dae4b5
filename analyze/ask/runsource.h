/* SPDX-License-Identifier: MIT */
/*
 * runsource.h: which process of a run a command line means, and the sum of all. Used by
 * cli/source.c alone, but for the options.
 */
#ifndef ANALYZE_ASK_RUNSOURCE_H
#define ANALYZE_ASK_RUNSOURCE_H

#include "analyze/ask/source.h"

/* Where source->path is a run's folder: opens it, chooses, and makes source->path the file of the
 * process, or source->merged the sum of all. Where it is a file and the sum is asked for: the sum
 * of its process and the children it forked. 0 or -1. */
int runsource_choose(struct source *source, const struct source_choice *choice,
                     struct error *error);

/* A file that was named itself, and its model is there: whether it is that of the process that was
 * asked for. 0 or -1. */
int runsource_check(const struct source *source, const struct source_choice *choice,
                    struct error *error);

/* Removes the sum. */
void runsource_drop(struct source *source);

#endif
