/* SPDX-License-Identifier: MIT */
/*
 * list.c: `memtrace list`: the profiles of running programs, and where those of killed ones went.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"
#include "cli/cli.h"
#include "collect/clock.h"
#include "collect/recover.h"
#include "collect/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct killed {
    pid_t pid;
    char program[2048];
    struct finished finished;
};

struct list {
    struct region *regions;
    size_t region_count;
    struct killed *killed;
    size_t count;
    size_t room;
};

static void list_add_killed(void *context, const struct recovered *recovered) {
    struct list *list = context;
    struct killed *killed;
    job_grow(&list->killed, &list->room, list->count, sizeof *killed);
    killed = &list->killed[list->count++];
    killed->pid = recovered->pid;
    killed->finished = recovered->finished;
    snprintf(killed->program, sizeof killed->program, "%s", recovered->program);
}

static const struct table_column running_columns[] = {
    {"pid", "pid", TABLE_COUNT, 8},
    {"program", NULL, TABLE_TEXT, 0},
    {NULL, "program", TABLE_TEXT, 24},
    {"live_bytes", "live", TABLE_BYTES, 12},
    {"peak_bytes", "peak", TABLE_BYTES, 12},
    {"allocations", "allocations", TABLE_COUNT, 15},
    {"running_ns", "running", TABLE_DURATION, 11},
    {"region", NULL, TABLE_TEXT, 0},
};
enum { RUNNING_COLUMNS = sizeof running_columns / sizeof running_columns[0] };

static void put_running(struct table *table, const struct region *region,
                        const struct profile *profile) {
    const struct memtrace_header *header = &profile->header;
    int64_t maximum = profile_load_i64(&profile_header(profile)->maximum_bytes);
    struct memtrace_point sum = {0};
    uint64_t now = clock_now_ns();
    uint64_t start = header->start_monotonic_ns;
    char pid[24];
    timeline_sum(profile, &sum);
    snprintf(pid, sizeof pid, "%ld", (long)region->pid);
    table_row(table,
              (struct table_cell[]){
                  {.is_known = true, .number = (uint64_t)region->pid, .text = pid},
                  table_text(header->executable),
                  table_text(pathname_base(header->executable)),
                  table_number(sum.live_bytes),
                  table_number(maximum > 0 && (uint64_t)maximum > sum.live_bytes ? (uint64_t)maximum
                                                                                 : sum.live_bytes),
                  table_number(sum.alloc_count),
                  table_number(now > start ? now - start : 0),
                  table_text(region->path)});
}

/* Those that run; json NULL: as text, if there are any. A region that cannot be read just now (it
 * begins or ends) is no row. Their number. */
static size_t put_all_running(const struct report *report, struct jsonwriter *json,
                              const struct list *list) {
    struct table table;
    size_t rows = 0;
    if (json != NULL) {
        table = table_begin_member(report, json, "running", NULL, running_columns, RUNNING_COLUMNS);
    }
    for (size_t i = 0; i < list->region_count; i++) {
        const struct region *region = &list->regions[i];
        bool exists = recover_is_meant(region) &&
                      (region->alive || (!region->is_foreign &&
                                         claim_process_exists(region->pid, region->start_ticks)));
        struct profile *profile = exists ? profile_open(region->path, NULL) : NULL;
        if (profile != NULL && rows++ == 0 && json == NULL) {
            table =
                table_open(report, "running", "Running programs", running_columns, RUNNING_COLUMNS);
        }
        if (profile != NULL) {
            put_running(&table, region, profile);
        }
        profile_close(profile);
    }
    if (json != NULL || rows != 0) {
        table_end_member(&table);
    }
    return rows;
}

/* For people they are sentences. */
static const struct table_column killed_columns[] = {
    {"pid", NULL, TABLE_COUNT, 0},
    {"program", NULL, TABLE_TEXT, 0},
    {"profile", NULL, TABLE_TEXT, 0},
    {"trouble", NULL, TABLE_TEXT, 0},
};
enum { KILLED_COLUMNS = sizeof killed_columns / sizeof killed_columns[0] };

static void print_text(const struct list *list) {
    struct report report = {.out = stdout};
    size_t running;
    cli_style(&report.options, NULL, NULL);
    running = put_all_running(&report, NULL, list);
    if (running == 0 && list->count == 0) {
        puts("No program of yours is profiled now.");
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct killed *one = &list->killed[i];
        struct recovered recovered = {
            .pid = one->pid, .program = one->program, .finished = one->finished};
        char line[6000];
        recover_line(&recovered, line, sizeof line);
        fputs(i == 0 && running != 0 ? "\n" : "", stdout);
        print_safe(stdout, "%s\n", line);
    }
}

static void print_json(const struct list *list) {
    const struct report report = {.out = stdout, .options = {.format = REPORT_JSON}};
    struct jsonwriter *json = jsonwriter_begin(stdout, JSONWRITER_INDENTED);
    struct table table;
    jsonwriter_map(json, NULL);
    put_all_running(&report, json, list);
    table = table_begin_member(&report, json, "killed", NULL, killed_columns, KILLED_COLUMNS);
    for (size_t i = 0; i < list->count; i++) {
        const struct killed *one = &list->killed[i];
        bool is_moved = one->finished.place == FINISH_MOVED;
        table_row(&table, (struct table_cell[]){
                              table_number((uint64_t)one->pid), table_text(one->program),
                              table_text(one->finished.path),
                              table_text(is_moved ? NULL : one->finished.trouble.message)});
    }
    table_end_member(&table);
    jsonwriter_end_map(json);
}

struct request {
    bool json;
};

static const struct option options[] = {
    {"json", 'j', NULL, "for other programs", OPTION_FLAG, OPTION_IN(struct request, json)},
    OPTION_END};

static int run_list(int argc, char **argv) {
    struct request request = {0};
    struct list list = {0};
    struct error error;
    cli_read(&list_command, &argc, &argv, &request);
    if (argc > 0) {
        cli_usage("list", "\"%s\" is one argument too many", argv[0]);
    }
    job_check(recover_killed(list_add_killed, &list, &error), &error);
    job_check(region_list(&list.regions, &list.region_count, &error), &error);
    job_undo(free, list.regions);
    (request.json ? print_json : print_text)(&list);
    return cli_finish(CLI_OK);
}

const struct command list_command = {
    .name = "list",
    .run = run_list,
    .summary = "list profiles of running and of killed programs",
    .usage = "[--json]",
    .about = "Lists your programs that are profiled now, and moves the profiles of "
             "killed ones to where they should have gone.",
    .options = options,
};
