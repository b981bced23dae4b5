/* SPDX-License-Identifier: MIT */
/*
 * allocators.c: `memtrace allocators PROGRAM`: which functions of a program can be followed by name
 * (--alloc). And, not for people, what the runtime starts in a program that runs so: it writes the
 * plan by which functions are led to the runtime (memtrace/allocators.h).
 */
#include "collect/allocators/allocators.h"
#include "analyze/base/job.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/table.h"
#include "cli/cli.h"
#include "cli/companion.h"
#include "cli/target.h"
#include "collect/allocators/alloctold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void allocators_tell(const char *line) {
    cli_error("--alloc: %s", line);
}

/* ---- For the runtime ---- */

static char region[PATH_MAX]; /* of the process that asks */

static void tell_once(const char *line) {
    if (alloctold_is_news(region, line)) {
        allocators_tell(line);
    }
}

enum { PID = 1, FILE_NAME, ENTRIES, SITES, FIRST, SPECIFICATIONS, RUNTIME_ARGUMENTS };

static bool is_from_runtime(int argc, char **argv) {
    return argc == RUNTIME_ARGUMENTS && argv[FILE_NAME][0] == '/' && argv[PID][0] != '\0' &&
           strspn(argv[PID], "0123456789") == strlen(argv[PID]);
}

/* "7f00,7f10,7f20" */
static bool read_entries(const char *text, struct memtrace_allocator_entries *entries) {
    int end = 0;
    return sscanf(text, "%" SCNx64 ",%" SCNx64 ",%" SCNx64 "%n", &entries->enter, &entries->resize,
                  &entries->leave, &end) == 3 &&
           text[end] == '\0';
}

static int plan_for_runtime(char **argv) {
    struct allocators_request request = {
        .file = argv[FILE_NAME], .specifications = argv[SPECIFICATIONS], .tell = tell_once};
    struct error error;
    char *end;
    char *plus;
    request.pid = (pid_t)strtol(argv[PID], NULL, 10);
    request.sites = strtoull(argv[SITES], &end, 16);
    request.first = (uint32_t)strtoul(argv[FIRST], &plus, 10);
    request.is_again = *plus == '+';
    if (!read_entries(argv[ENTRIES], &request.entries) || *end != '\0') {
        cli_usage("allocators", "started by the runtime with other addresses than its own");
    }
    companion_shed(argv);
    snprintf(region, sizeof region, "%.*s", (int)(strlen(argv[FILE_NAME]) - strlen(".plan")),
             argv[FILE_NAME]);
    if (allocators_plan(&request, &error) == 0) {
        return CLI_OK;
    }
    if (!request.is_again) {
        tell_once(error.message);
    }
    return CLI_FAILURE;
}

/* ---- For people ---- */

struct request {
    bool all;
    bool json;
};

static const struct option options[] = {
    {"all", 'a', NULL,
     "list each function of PROGRAM: which could be followed, and why others cannot", OPTION_FLAG,
     OPTION_IN(struct request, all)},
    {"json", 'j', NULL, "for other programs", OPTION_FLAG, OPTION_IN(struct request, json)},
    OPTION_END};

static const struct table_column columns[] = {
    {"function", "function", TABLE_TEXT, 36},
    {"set", "set", TABLE_TEXT, 8},
    {"kind", "kind", TABLE_TEXT, 8},
    {"address", "address", TABLE_ADDRESS, 0},
    {"bytes", "bytes", TABLE_COUNT, 6},
    {"obstacle", "cannot be followed because", TABLE_TEXT, 60},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void allocators_put_row(void *context, const struct allocators_row *row) {
    table_row(context, (struct table_cell[]){table_text(row->function), table_text(row->set),
                                             table_text(row->what), table_number(row->address),
                                             table_number_if(row->length != 0, row->length),
                                             table_text(row->why)});
}

static void allocators_free_specs(void *what) {
    allocspec_free(what);
}

static void allocators_show(int argc, char **argv, const struct request *request) {
    struct allocspecs *specs = job_alloc(sizeof *specs);
    struct report report = {.out = stdout};
    struct jsonwriter *json = request->json ? jsonwriter_begin(stdout, JSONWRITER_INDENTED) : NULL;
    struct table table;
    struct error error;
    char path[PATH_MAX];
    struct allocators_listing listing = {.path = path,
                                         .specs = specs,
                                         .all = request->all,
                                         .row = allocators_put_row,
                                         .context = &table,
                                         .tell = allocators_tell};
    int result;
    job_undo(allocators_free_specs, specs);
    if (strchr(argv[0], '/') != NULL || access(argv[0], F_OK) == 0 ||
        target_find(argv[0], path) != 0) {
        snprintf(path, sizeof path, "%s", argv[0]);
    }
    for (int i = 1; i < argc; i++) {
        if (allocspec_add(specs, argv[i], &error) != 0) {
            cli_error("%s", error.message);
            cli_end(CLI_USAGE);
        }
    }
    if (json != NULL) {
        report.options.format = REPORT_JSON;
        jsonwriter_map(json, NULL);
    } else {
        cli_style(&report.options, NULL, NULL);
    }
    table = table_begin_member(&report, json, "functions", "Functions", columns, COLUMNS);
    result = allocators_list(&listing, &error);
    table_end_member(&table);
    if (json != NULL) {
        jsonwriter_end_map(json);
    }
    job_check(result, &error);
}

static int run_allocators(int argc, char **argv) {
    struct request request = {0};
    if (is_from_runtime(argc, argv)) {
        return plan_for_runtime(argv);
    }
    cli_read(&allocators_command, &argc, &argv, &request);
    if (argc == 0) {
        cli_usage("allocators", "which program?");
    }
    allocators_show(argc, argv, &request);
    return cli_finish(CLI_OK);
}

const struct command allocators_command = {
    .name = "allocators",
    .run = run_allocators,
    .summary = "list functions of a program that can be followed",
    .usage = "[OPTION]... PROGRAM [SPECIFICATION]...",
    .about = "Shows which functions of PROGRAM, or of a library, specifications of functions that "
             "allocate mean, as memtrace run and memtrace record take them, whether they can be "
             "followed, and if not, why. "
             "Without a specification: those of the ready-made sets whose allocator PROGRAM has. "
             "Nothing is run.",
    .options = options,
    .operands = "FILE SPECIFICATION",
};
