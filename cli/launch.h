/* SPDX-License-Identifier: MIT */
/*
 * launch.h: runs a program with the runtime preloaded: we are its collector while it runs, finish
 * what it leaves when it is gone, and end as it ended.
 *
 * Called by cli/run and cli/record, once a process.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/variables.h"

/* Sets the variables for the program, and what it needs besides. Returns the exit status for it, or
 * dies of what the program died of. */
int launch_run(struct variables *variables, char **argv);

#endif
