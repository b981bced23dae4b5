/* SPDX-License-Identifier: MIT */
/*
 * launch.h: runs a program with the runtime preloaded: we are its collector while it runs, finish
 * what it leaves when it is gone, and end as it ended.
 *
 * Called by cli/run and cli/record, once a process.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "cli/command.h"
#include "cli/variables.h"

/* A command that starts a program; `variables` holds what it sets in any case. Returns the exit
 * status, or dies of what the program died of. */
int launch_command(const struct command *command, struct variables *variables, int argc,
                   char **argv);

#endif
