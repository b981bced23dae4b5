/* SPDX-License-Identifier: MIT */
/* run.c: `memtrace run`: profiles a program that is built already. */
#include "cli/cli.h"
#include "cli/launch.h"

static const char usage[] =
    "usage: memtrace run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM under the profiler and leaves a profile file. The exit status is PROGRAM's.\n"
    "\n"
    "  -o, --output PATTERN  where the profile goes: %p pid, %e program, %t time, %n number\n"
    "                        (default memtrace.%e.%p.mtp)\n"
    "      --sample SIZE     not all: one allocation in SIZE bytes, chosen at random\n";

static const struct variables_option own[] = {
    {"output", 'o', VARIABLES_FILE, "MEMTRACE_OUTPUT", NULL},
    {"sample", 0, VARIABLES_SIZE, "MEMTRACE_SAMPLE", NULL},
    {0}};

int cmd_run(int argc, char **argv) {
    static struct variables variables;
    return launch_command(&variables, argc, argv, usage, own);
}
