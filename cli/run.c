/* SPDX-License-Identifier: MIT */
/* run.c: `memtrace run`: profiles a program that is built already. */
#include "cli/cli.h"
#include "cli/launch.h"

#include <stdio.h>

static const char usage[] =
    "Usage: memtrace run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM under the profiler and leaves a profile file. The exit status is PROGRAM's.\n"
    "\n"
    "  -o, --output PATTERN  where the profile goes: %p pid, %e program, %t time, %n number\n"
    "                        (default memtrace.%e.%p.mtp)\n";

static const struct variables_option own[] = {
    {"output", 'o', VARIABLES_TEXT, "MEMTRACE_OUTPUT", NULL}, {0}};

int cmd_run(int argc, char **argv) {
    static struct variables variables;
    int first = 0;
    int status = variables_parse(&variables, argc, argv, own, &first);
    if (status > 0) {
        return status;
    }
    if (status < 0) {
        fputs(usage, stdout);
        variables_print_help();
        return cli_finish(CLI_OK);
    }
    return launch_run(&variables, argv + first);
}
