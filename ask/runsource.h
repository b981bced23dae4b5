/* SPDX-License-Identifier: MIT */
/*
 * runsource.h: which process of a run a command line means, and the sum of all; one
 * recording of several. Called by ask/source.c and cli/merge.
 */
#ifndef ASK_RUNSOURCE_H
#define ASK_RUNSOURCE_H

#include "ask/source.h"
#include "collect/transform/merge.h"

/* Where source->path is a run's folder: opens it, chooses, and makes source->path the file of the
 * process, or source->merged the sum of all. Where it is a file and the sum is asked for: the sum
 * of its process and the children it forked; of a running program, of all that run now of its run.
 * 0 or -1. */
int runsource_choose(struct source *source, const struct source_choice *choice,
                     struct error *error);

/* A file that was named itself, and its model is there: whether it is that of the process that was
 * asked for. 0 or -1. */
int runsource_check(const struct source *source, const struct source_choice *choice,
                    struct error *error);

/* Makes one recording of these and of the parts that lie beside them (merge.h). 0 or -1. */
int runsource_merge(char *const *paths, size_t count, const char *output,
                    const struct transform_options *options, struct merge_result *result,
                    struct error *error);

/* Removes the sum. */
void runsource_drop(struct source *source);

#endif
