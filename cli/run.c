/* SPDX-License-Identifier: MIT */
/* run.c: `memtrace run`: profiles a program that is built already. */
#include "cli/cli.h"
#include "cli/launch.h"

static int run_run(int argc, char **argv) {
    static struct variables variables;
    return launch_command(&run_command, &variables, argc, argv);
}

const struct command run_command = {
    .name = "run",
    .run = run_run,
    .summary = "run a program and profile it",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM under the profiler and leaves a profile file. The exit status is "
             "PROGRAM's.",
    .options = variables_of_profiles,
    .more = variables_print_more,
    .takes_program = true,
};
