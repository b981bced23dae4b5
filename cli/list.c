/* SPDX-License-Identifier: MIT */
/*
 * list.c: `memtrace list`: the profiles of running programs, and where those of killed ones went.
 */
#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"
#include "cli/cli.h"
#include "cli/terminal.h"
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

static void add_killed(void *context, const struct recovered *recovered) {
    struct list *list = context;
    struct killed *killed;
    if (array_grow(&list->killed, &list->killed_room, list->killed_count, sizeof *killed) != 0) {
        return;
    }
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

/* 0, or -1 (out of memory). A region that cannot be read just now (it begins or ends) is no row. */
static int add_running(struct list *list, struct error *error) {
    struct region *regions;
    size_t count;
    if (region_list(&regions, &count, error) != 0) {
        return -1;
    }
    list->running = calloc(count + 1, sizeof *list->running);
    for (size_t i = 0; list->running != NULL && i < count; i++) {
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
    free(regions);
    return list->running != NULL ? 0 : error_set(error, "out of memory");
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

static void put_running(struct table *table, const struct list *list) {
    for (size_t i = 0; i < list->running_count; i++) {
        const struct running *one = &list->running[i];
        char pid[24];
        snprintf(pid, sizeof pid, "%ld", (long)one->pid);
        table_row(table, (struct table_cell[]){
                             {.is_known = true, .number = (uint64_t)one->pid, .text = pid},
                             table_text(one->program),
                             table_text(pathname_base(one->program)),
                             table_number(one->live_bytes),
                             table_number(one->maximum_bytes),
                             table_number(one->allocations),
                             table_number(one->running_ns),
                             table_text(one->region)});
    }
}

/* For people they are sentences. */
static const struct table_column killed_columns[] = {
    {"pid", NULL, TABLE_COUNT, 0},
    {"program", NULL, TABLE_TEXT, 0},
    {"profile", NULL, TABLE_TEXT, 0},
    {"trouble", NULL, TABLE_TEXT, 0},
};
enum { KILLED_COLUMNS = sizeof killed_columns / sizeof killed_columns[0] };

static void put_killed(struct table *table, const struct list *list) {
    for (size_t i = 0; i < list->killed_count; i++) {
        const struct killed *one = &list->killed[i];
        bool is_moved = one->finished.place == FINISH_MOVED;
        table_row(table, (struct table_cell[]){
                             table_number((uint64_t)one->pid), table_text(one->program),
                             table_text(one->finished.path),
                             table_text(is_moved ? NULL : one->finished.trouble.message)});
    }
}

static void print_text(const struct list *list) {
    struct report report = {.out = stdout};
    if (list->running_count == 0 && list->killed_count == 0) {
        puts("No program of yours is profiled now.");
    }
    terminal_style(&report.options, NULL, NULL);
    if (list->running_count != 0) {
        struct table table =
            table_open(&report, "running", "Running programs", running_columns, RUNNING_COLUMNS);
        put_running(&table, list);
        table_close(&table);
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

/* 0, or -1 (out of memory). */
static int print_json(const struct list *list) {
    const struct report report = {.out = stdout, .options = {.format = REPORT_JSON}};
    struct jsonwriter *json = jsonwriter_open(stdout, JSONWRITER_INDENTED);
    struct table table;
    if (json == NULL) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    table = table_begin_member(&report, json, "running", NULL, running_columns, RUNNING_COLUMNS);
    put_running(&table, list);
    table_end_member(&table);
    table = table_begin_member(&report, json, "killed", NULL, killed_columns, KILLED_COLUMNS);
    put_killed(&table, list);
    table_end_member(&table);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    return 0;
}

struct request {
    bool json;
};

static const struct option options[] = {
    {"json", 'j', NULL, "for other programs", OPTION_FLAG, OPTION_IN(struct request, json)},
    OPTION_END};

static int show(bool json) {
    struct list list = {0};
    struct error error;
    int status = CLI_OK;
    if (recover_killed(add_killed, &list, &error) != 0 || add_running(&list, &error) != 0) {
        status = cli_error("%s", error.message);
    } else if (!json) {
        print_text(&list);
    } else if (print_json(&list) != 0) {
        status = cli_error("out of memory");
    }
    free(list.running);
    free(list.killed);
    return status;
}

static int run_list(int argc, char **argv) {
    struct request request = {0};
    int status = cli_read(&list_command, &argc, &argv, &request);
    if (status == CLI_OK && argc > 0) {
        status = cli_usage("list", "\"%s\" is one argument too many", argv[0]);
    }
    return status == CLI_OK ? cli_finish(show(request.json)) : status;
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
