/* SPDX-License-Identifier: MIT */
/*
 * outside.h: the profile of a program that was attached to from outside of its container, or of
 * another user's: the program cannot write it where the user wants it, so a process of ours stays
 * beside it that does: when the program is left, when it ends, or all the time for a recording.
 *
 * Called by cli/attach.
 */
#ifndef CLI_OUTSIDE_H
#define CLI_OUTSIDE_H

#include "analyze/base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Where it goes, by a pattern as MEMTRACE_OUTPUT has it (%e, %p, %t, %n, %%), below this folder. 0,
 * or -1 with error: too long, or that folder cannot be written to. */
int outside_path(const char *pattern, pid_t pid, char path[PATH_MAX], struct error *error);

/* Starts that process, unless there is one. is_sent: what streaming_begin was told, it does. 1: it
 * is there; 0: there was one; -1 with error. */
int outside_watch(pid_t pid, const char *path, bool is_sent, struct error *error);

#endif
