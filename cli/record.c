/* SPDX-License-Identifier: MIT */
/* record.c: `memtrace record`: runs a program and writes every event down. */
#include "cli/cli.h"
#include "cli/launch.h"

static const char usage[] =
    "usage: memtrace record [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM and writes every allocation, reallocation and free into a recording. The exit\n"
    "status is PROGRAM's.\n"
    "\n"
    "  -o, --output PATTERN  where the recording goes: %p pid, %e program, %t time, %n number\n"
    "                        (default memtrace.%e.%p.mtr)\n"
    "      --precise         the time of each event, not of every few milliseconds\n"
    "      --free-stacks     the call path of frees, too\n"
    "      --no-addresses    a smaller file, without the addresses of blocks\n"
    "      --sample SIZE     not all: one allocation in SIZE bytes, chosen at random\n"
    "      --sizes MIN-MAX   only blocks of such sizes: 4K-, -1M, 100-200\n"
    "      --modules LIST    only what these allocate: app,libssl; !libc: all but that\n"
    "      --cull-below TIME leave out what is freed sooner\n"
    "      --duration TIME   stop recording after TIME: 30s, 5m, 1h\n"
    "      --rotate SIZE     begin a new file whenever one has SIZE bytes: 512M, 4G\n"
    "      --embed WHAT      the program's files that go along: symbols (default), all, none\n"
    "      --on-lag WHAT     where the disk is too slow: wait (default) or drop\n"
    "      --profile         leave a profile, too\n";

static const struct variables_option own[] = {
    {"output", 'o', VARIABLES_FILE, "MEMTRACE_RECORD_OUTPUT", NULL},
    {"precise", 0, VARIABLES_SET, "MEMTRACE_PRECISE", "1"},
    {"free-stacks", 0, VARIABLES_SET, "MEMTRACE_FREE_STACKS", "1"},
    {"no-addresses", 0, VARIABLES_SET, "MEMTRACE_ADDRESSES", "0"},
    {"sample", 0, VARIABLES_SIZE, "MEMTRACE_SAMPLE", NULL},
    {"sizes", 0, VARIABLES_SIZES, "MEMTRACE_RECORD_SIZES", NULL},
    {"modules", 0, VARIABLES_TEXT, "MEMTRACE_RECORD_MODULES", NULL},
    {"cull-below", 0, VARIABLES_TIME, "MEMTRACE_CULL", NULL},
    {"duration", 0, VARIABLES_TIME, "MEMTRACE_DURATION", NULL},
    {"rotate", 0, VARIABLES_SIZE, "MEMTRACE_ROTATE", NULL},
    {"embed", 0, VARIABLES_WORD, "MEMTRACE_EMBED", "symbols|all|none"},
    {"on-lag", 0, VARIABLES_WORD, "MEMTRACE_ON_LAG", "wait|drop"},
    {"profile", 0, VARIABLES_SET, "MEMTRACE_PROFILE", "1"},
    {0}};

int cmd_record(int argc, char **argv) {
    static struct variables variables;
    variables_set(&variables, "MEMTRACE_RECORD", "1");
    return launch_command(&variables, argc, argv, usage, own);
}
