/* SPDX-License-Identifier: MIT */
/*
 * source.h: the profile that a command line means. What killed programs left is moved to its place
 * before, as `memtrace list` and `memtrace run` do.
 *
 * Called by cli/report.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "analyze/read/profile.h"

/* The newest *.mtp of this folder; the caller frees it. NULL: none. */
char *source_newest(void);

/* A number is a process, running or killed, unless there is a file of that name. NULL: see error.
 */
struct profile *source_open(const char *source, struct error *error);

#endif
