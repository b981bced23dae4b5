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
    "                        (default memtrace.%e.%p.mtp)\n"
    "  -e, --every TIME      print the largest call paths every TIME: 500ms, 30s, 5m, 1h\n"
    "  -c, --churn SIZE      ... and/or every SIZE bytes allocated plus freed: 64M, 1G\n"
    "  -n, --top N           how many call paths; 0: all (default 10)\n"
    "  -l, --log FILE        print them to FILE, not to stderr\n"
    "      --summary, --no-summary\n"
    "                        the summary at the end (default: yes)\n"
    "      --stacks KIND     none: totals only; short: the program's own modules; full (default)\n"
    "      --contexts N      the most call paths to keep apart\n"
    "      --unwind MODE     how prebuilt code is walked: auto (default), patch, verify, fp,\n"
    "                        libunwind\n"
    "      --inject          also follow libraries that bind an allocator of their own\n"
    "      --limit HOW-MUCH  watch the program's memory: 2G, or 80% of what it may use\n"
    "      --on-limit WHAT   report (default), dump: also copy the profile, abort: also end it\n"
    "      --start-off       count nothing until the program or a signal switches it on\n"
    "      --signals LIST    signals that do so: USR1, snapshot:USR2; none\n"
    "      --follow-children also profile the programs that it starts\n"
    "  -h, --help            this text\n"
    "\n"
    "Each option is also an environment variable: MEMTRACE_OUTPUT, MEMTRACE_EVERY, ...\n";

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
        return cli_finish(CLI_OK);
    }
    return launch_run(&variables, argv + first);
}
