/* SPDX-License-Identifier: MIT */
/* run.c: `memtrace run`: profiles a program that is built already. */
#include "cli/cli.h"
#include "cli/launch.h"

static const struct option options[] = {
    OPTION_WITH("output", 'o', VARIABLES_KEY, "PATTERN",
                "where the profile goes: %p pid, %e program, %t time, %n number (default: "
                "memtrace.%e.%p.mtp)",
                VARIABLES_TARGET(VARIABLES_FILE, "MEMTRACE_OUTPUT")),
    OPTION_WITH("sample", 0, VARIABLES_KEY, "SIZE",
                "not all: one allocation in SIZE bytes, chosen at random",
                VARIABLES_TARGET(VARIABLES_SIZE, "MEMTRACE_SAMPLE")),
    OPTION_PART(variables_options), OPTION_END};

static int run_run(int argc, char **argv) {
    static struct variables variables;
    return launch_command(&variables, argc, argv, options);
}

const struct command run_command = {
    .name = "run",
    .run = run_run,
    .summary = "run a program and profile it",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM under the profiler and leaves a profile file. The exit status is "
             "PROGRAM's.",
    .options = options,
    .more = variables_print_more,
    .takes_program = true,
};
