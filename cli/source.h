/* SPDX-License-Identifier: MIT */
/*
 * source.h: the profile or recording that a command line means. What killed programs left is moved
 * to its place before, as `memtrace list` and `memtrace run` do.
 *
 * Called by cli/report.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "analyze/model/model.h"
#include "analyze/model/replay.h"

/* The newest *.mtp or *.mtr of this folder; the caller frees it. NULL: none. */
char *source_newest(void);

/* Loads a profile or replays a recording; options are for the latter. A number is a process,
 * running or killed, unless there is a file of that name. *path is the file that was read; the
 * caller frees it. NULL: see error. */
struct model *source_load(const char *source, const struct replay_options *options, char **path,
                          struct error *error);

#endif
