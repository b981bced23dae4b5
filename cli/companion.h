/* SPDX-License-Identifier: MIT */
/*
 * companion.h: processes of ours that stay beside a program and write down what is counted of it:
 * `memtrace companion`, which the runtime starts, and one for a program that was attached to from
 * outside of its container, or of another user's: the program cannot write its profile where the
 * user wants it, so that one does: when the program is left, when it ends, or all the time for a
 * recording.
 *
 * Called by cli/attach; by cli/allocators, which the runtime starts, too.
 */
#ifndef CLI_COMPANION_H
#define CLI_COMPANION_H

#include "analyze/base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Where it goes, by a pattern as MEMTRACE_OUTPUT has it (%e, %p, %t, %n, %%), below this folder. 0,
 * or -1 with error: too long, or that folder cannot be written to. */
int companion_path(const char *pattern, pid_t pid, char path[PATH_MAX], struct error *error);

/* Starts that process, unless there is one. is_sent: what streaming_begin was told, it does. 1: it
 * is there; 0: there was one; -1 with error. */
int companion_watch(pid_t pid, const char *path, bool is_sent, struct error *error);

/* What the runtime starts keeps none of the program's descriptors but stderr. A library preloaded
 * into the program came along: then it starts again without it. */
void companion_shed(char **argv);

#endif
