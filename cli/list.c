/* SPDX-License-Identifier: MIT */
/*
 * list.c: `memtrace list`: the profiles of running programs, and where those of killed ones went.
 */
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/clock.h"
#include "collect/recover.h"
#include "collect/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void add_killed(void *context, const struct recovered *recovered) {
    struct list *list = context;
    struct killed *grown = realloc(list->killed, (list->killed_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return;
    }
    list->killed = grown;
    grown += list->killed_count++;
    grown->pid = recovered->pid;
    grown->finished = recovered->finished;
    snprintf(grown->program, sizeof grown->program, "%s", recovered->program);
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

static void print_text(const struct list *list) {
    if (list->running_count == 0 && list->killed_count == 0) {
        puts("No program of yours is profiled now.");
    }
    if (list->running_count != 0) {
        printf("%8s  %-24s %12s %12s %15s  %s\n", "PID", "PROGRAM", "LIVE", "PEAK", "ALLOCATIONS",
               "RUNNING");
    }
    for (size_t i = 0; i < list->running_count; i++) {
        const struct running *one = &list->running[i];
        struct number n[4];
        print_safe(stdout, "%8ld  %-24s %12s %12s %15s  %s\n", (long)one->pid,
                   base_name(one->program), number_bytes(&n[0], one->live_bytes),
                   number_bytes(&n[1], one->maximum_bytes), number_count(&n[2], one->allocations),
                   number_duration(&n[3], one->running_ns));
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

static void write_running(struct jsonwriter *json, const struct running *one) {
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "pid", (uint64_t)one->pid);
    jsonwriter_string(json, "program", one->program);
    jsonwriter_number(json, "live_bytes", one->live_bytes);
    jsonwriter_number(json, "maximum_bytes", one->maximum_bytes);
    jsonwriter_number(json, "allocations", one->allocations);
    jsonwriter_number(json, "running_ns", one->running_ns);
    jsonwriter_string(json, "region", one->region);
    jsonwriter_end_map(json);
}

static void write_killed(struct jsonwriter *json, const struct killed *one) {
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "pid", (uint64_t)one->pid);
    jsonwriter_string(json, "program", one->program);
    jsonwriter_string(json, "profile", one->finished.path);
    if (one->finished.place != FINISH_MOVED) {
        jsonwriter_string(json, "trouble", one->finished.trouble.message);
    }
    jsonwriter_end_map(json);
}

/* 0, or -1 (out of memory). */
static int print_json(const struct list *list) {
    struct jsonwriter *json = jsonwriter_open(stdout, JSONWRITER_INDENTED);
    if (json == NULL) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    jsonwriter_array(json, "running");
    for (size_t i = 0; i < list->running_count; i++) {
        write_running(json, &list->running[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "killed");
    for (size_t i = 0; i < list->killed_count; i++) {
        write_killed(json, &list->killed[i]);
    }
    jsonwriter_end_array(json);
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
