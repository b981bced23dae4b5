/* SPDX-License-Identifier: MIT */
/* record.c: `memtrace record`: runs a program and writes every event down. */
#include "cli/cli.h"
#include "cli/launch.h"

static int run_record(int argc, char **argv) {
    static struct variables variables;
    variables_set(&variables, "MEMTRACE_RECORD", "1");
    return launch_command(&record_command, &variables, argc, argv);
}

const struct command record_command = {
    .name = "record",
    .run = run_record,
    .summary = "run a program and record every event",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM and writes every allocation, reallocation and free into a recording. "
             "The exit status is PROGRAM's.",
    .options = variables_of_recordings,
    .more = variables_print_more,
    .takes_program = true,
};
