/* SPDX-License-Identifier: MIT */
/* record.c: `memtrace record`: runs a program and writes every event down. */
#include "cli/cli.h"
#include "cli/launch.h"

static const struct option options[] = {
    OPTION_WITH("output", 'o', VARIABLES_KEY, "PATTERN",
                "where the recording goes: %p pid, %e program, %t time, %n number (default: "
                "memtrace.%e.%p.mtr)",
                VARIABLES_TARGET(VARIABLES_FILE, "MEMTRACE_RECORD_OUTPUT")),
    OPTION_WITH("precise", 0, VARIABLES_KEY, NULL,
                "the time of each event, not of every few milliseconds",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_PRECISE", "1")),
    OPTION_WITH("free-stacks", 0, VARIABLES_KEY, NULL, "the call path of frees, too",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_FREE_STACKS", "1")),
    OPTION_WITH("no-addresses", 0, VARIABLES_KEY, NULL,
                "a smaller file, without the addresses of blocks",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_ADDRESSES", "0")),
    OPTION_WITH("sample", 0, VARIABLES_KEY, "SIZE",
                "not all: one allocation in SIZE bytes, chosen at random",
                VARIABLES_TARGET(VARIABLES_SIZE, "MEMTRACE_SAMPLE")),
    OPTION_WITH("sizes", 0, VARIABLES_KEY, "MIN-MAX",
                "only blocks of such sizes: 4K-, -1M, 100-200",
                VARIABLES_TARGET(VARIABLES_SIZES, "MEMTRACE_RECORD_SIZES")),
    OPTION_WITH("modules", 0, VARIABLES_KEY, "LIST",
                "only what these allocate: app,libssl; !libc: all but that",
                VARIABLES_TARGET(VARIABLES_TEXT, "MEMTRACE_RECORD_MODULES")),
    OPTION_WITH("cull-below", 0, VARIABLES_KEY, "TIME", "leave out what is freed sooner",
                VARIABLES_TARGET(VARIABLES_TIME, "MEMTRACE_CULL")),
    OPTION_WITH("duration", 0, VARIABLES_KEY, "TIME", "stop recording after TIME: 30s, 5m, 1h",
                VARIABLES_TARGET(VARIABLES_TIME, "MEMTRACE_DURATION")),
    OPTION_WITH("rotate", 0, VARIABLES_KEY, "SIZE",
                "begin a new file whenever one has SIZE bytes: 512M, 4G",
                VARIABLES_TARGET(VARIABLES_SIZE, "MEMTRACE_ROTATE")),
    OPTION_WITH("embed", 0, VARIABLES_KEY, "symbols|all|none",
                "the program's files that go along (default: symbols)",
                VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_EMBED")),
    OPTION_WITH("on-lag", 0, VARIABLES_KEY, "wait|drop",
                "where the disk is too slow (default: wait)",
                VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_ON_LAG")),
    OPTION_WITH("profile", 0, VARIABLES_KEY, NULL, "leave a profile, too",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_PROFILE", "1")),
    OPTION_PART(variables_options),
    OPTION_END};

static int run_record(int argc, char **argv) {
    static struct variables variables;
    variables_set(&variables, "MEMTRACE_RECORD", "1");
    return launch_command(&variables, argc, argv, options);
}

const struct command record_command = {
    .name = "record",
    .run = run_record,
    .summary = "run a program and record every event",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM and writes every allocation, reallocation and free into a recording. "
             "The exit status is PROGRAM's.",
    .options = options,
    .more = variables_print_more,
    .takes_program = true,
};
