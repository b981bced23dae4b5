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

struct running {
    pid_t pid;
    char program[2048];
    char region[512];
    uint64_t live_bytes;
    uint64_t maximum_bytes;
    uint64_t allocations;
    uint64_t running_ns;
};

struct killed {
    pid_t pid;
    char program[2048];
    struct finished finished;
};

struct list {
    struct running *running;
    size_t running_count;
    struct killed *killed;
    size_t killed_count;
    size_t killed_room;
};

static void list_add_killed(void *context, const struct recovered *recovered) {
    struct list *list = context;
    struct killed *killed;
    job_grow(&list->killed, &list->killed_room, list->killed_count, sizeof *killed);
    killed = &list->killed[list->killed_count++];
    killed->pid = recovered->pid;
    killed->finished = recovered->finished;
    snprintf(killed->program, sizeof killed->program, "%s", recovered->program);
}

static void fill_running(struct running *running, const struct region *region,
                         const struct profile *profile) {
    const struct memtrace_header *header = &profile->header;
    int64_t maximum = profile_load_i64(&profile_header(profile)->maximum_bytes);
    struct memtrace_point sum = {0};
    uint64_t now = clock_now_ns();
    timeline_sum(profile, &sum);
    *running = (struct running){
        .pid = region->pid,
        .live_bytes = sum.live_bytes,
        .maximum_bytes =
            maximum > 0 && (uint64_t)maximum > sum.live_bytes ? (uint64_t)maximum : sum.live_bytes,
        .allocations = sum.alloc_count,
        .running_ns = now > header->start_monotonic_ns ? now - header->start_monotonic_ns : 0,
    };
    snprintf(running->program, sizeof running->program, "%s", header->executable);
    snprintf(running->region, sizeof running->region, "%s", region->path);
}

/* A region that cannot be read just now (it begins or ends) is no row. */
static void list_add_running(struct list *list) {
    struct region *regions;
    struct error error;
    size_t count;
    job_check(region_list(&regions, &count, &error), &error);
    job_undo(free, regions);
    list->running = job_array(count, sizeof *list->running);
    for (size_t i = 0; i < count; i++) {
        bool exists =
            recover_is_meant(&regions[i]) &&
            (regions[i].alive || (!regions[i].is_foreign &&
                                  claim_process_exists(regions[i].pid, regions[i].start_ticks)));
        struct profile *profile = exists ? profile_open(regions[i].path, NULL) : NULL;
        if (profile != NULL) {
            fill_running(&list->running[list->running_count++], &regions[i], profile);
        }
        profile_close(profile);
    }
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

/* json NULL: as text. */
static void put_running(const struct report *report, struct jsonwriter *json,
                        const struct list *list) {
    struct table table = table_begin_member(report, json, "running", "Running programs",
                                            running_columns, RUNNING_COLUMNS);
    for (size_t i = 0; i < list->running_count; i++) {
        const struct running *one = &list->running[i];
        char pid[24];
        snprintf(pid, sizeof pid, "%ld", (long)one->pid);
        table_row(&table, (struct table_cell[]){
                              {.is_known = true, .number = (uint64_t)one->pid, .text = pid},
                              table_text(one->program),
                              table_text(pathname_base(one->program)),
                              table_number(one->live_bytes),
                              table_number(one->maximum_bytes),
                              table_number(one->allocations),
                              table_number(one->running_ns),
                              table_text(one->region)});
    }
    table_end_member(&table);
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
    if (list->running_count == 0 && list->killed_count == 0) {
        puts("No program of yours is profiled now.");
    }
    cli_style(&report.options, NULL, NULL);
    if (list->running_count != 0) {
        put_running(&report, NULL, list);
    }
    for (size_t i = 0; i < list->killed_count; i++) {
        const struct killed *one = &list->killed[i];
        struct recovered recovered = {
            .pid = one->pid, .program = one->program, .finished = one->finished};
        char line[6000];
        recover_line(&recovered, line, sizeof line);
        fputs(i == 0 && list->running_count != 0 ? "\n" : "", stdout);
        print_safe(stdout, "%s\n", line);
    }
}

static void print_json(const struct list *list) {
    const struct report report = {.out = stdout, .options = {.format = REPORT_JSON}};
    struct jsonwriter *json = jsonwriter_begin(stdout, JSONWRITER_INDENTED);
    struct table table;
    jsonwriter_map(json, NULL);
    put_running(&report, json, list);
    table = table_begin_member(&report, json, "killed", NULL, killed_columns, KILLED_COLUMNS);
    for (size_t i = 0; i < list->killed_count; i++) {
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
    list_add_running(&list);
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
