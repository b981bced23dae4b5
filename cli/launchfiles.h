/* SPDX-License-Identifier: MIT */
/*
 * launchfiles.h: where the files of a run go: patterns that become the same absolute paths for all
 * of its processes.
 *
 * Called by cli/launch.
 */
#ifndef CLI_LAUNCHFILES_H
#define CLI_LAUNCHFILES_H

#include "cli/variables.h"

#include <sys/types.h>

enum { LAUNCHFILES = 3 };
struct launchfiles {
    char *patterns[LAUNCHFILES]; /* profile, recording, log; NULL: not set */
    char *path;
};

/* Sets MEMTRACE_OUTPUT, MEMTRACE_RECORD_OUTPUT and MEMTRACE_LOG, for a program that was called
 * `typed` on the command line. 0, or CLI_FAILURE with the line printed. */
int launchfiles_name(struct launchfiles *files, struct variables *variables, const char *typed);

/* The run's profile, or recording, once the program has a pid; lives as long as `files`. "": not
 * named, or out of memory. */
const char *launchfiles_path(struct launchfiles *files, bool is_recording, pid_t pid);

void launchfiles_free(struct launchfiles *files);

#endif
