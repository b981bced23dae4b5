/* SPDX-License-Identifier: MIT */
/*
 * attach.c: `memtrace attach PID` and `memtrace detach PID`: MemTrace comes into a program that
 * runs, and leaves it.
 */
#include "memtrace/attach.h"
#include "analyze/read/region.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/heapcensus.h"
#include "cli/outside.h"
#include "cli/stopping.h"
#include "cli/target.h"
#include "collect/attach/attachthread.h"
#include "collect/attach/preflight.h"
#include "collect/clock.h"
#include "memtrace/events.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { END_SECONDS = 60 }; /* for what is left of a recording to be written */

struct request {
    const char *output;
    uint64_t for_ns;
    uint64_t sample_bytes;
    bool record;
    bool dry_run;
    bool census;
    bool json;
    bool force;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"for", 'f', "TIME", "detach after so long, or at Ctrl-C (30s, 5m)", OPTION_DURATION,
     IN(for_ns), .least = 1},
    {"output", 'o', "FILE",
     "where the profile or recording goes (memtrace.%e.%p.mtp or .mtr; %e: program, %p: process "
     "id)",
     OPTION_TEXT, IN(output)},
    {"record", 'r', NULL, "make a recording, of each event and its time", OPTION_FLAG, IN(record)},
    {"sample", 0, "SIZE", "count one allocation in SIZE bytes, chosen at random", OPTION_SIZE,
     IN(sample_bytes), .least = 1, .most = INT64_MAX},
    {"force", 0, NULL, "also where its seccomp filters cannot be read, which may end it",
     OPTION_FLAG, IN(force)},
    {"census", 0, NULL,
     "only tell what its heap holds, by size and C++ class; it is not profiled for that",
     OPTION_FLAG, IN(census)},
    {"json", 0, NULL, "with --census: as JSON", OPTION_FLAG, IN(json)},
    {"dry-run", 'n', NULL, "only say whether it can be attached to; nothing is touched",
     OPTION_FLAG, IN(dry_run)},
    OPTION_END};

static int read_pid(const struct command *command, int argc, char **argv, pid_t *pid) {
    uint64_t number;
    if (argc < 1) {
        return cli_usage(command->name, "a process id is needed");
    }
    if (argc > 1) {
        return cli_usage(command->name, "\"%s\" is one argument too many", argv[1]);
    }
    if (quantity_u64(argv[0], &number) != 0 || number == 0 || number > INT32_MAX) {
        return cli_usage(command->name, "'%s' is not a process id", argv[0]);
    }
    *pid = (pid_t)number;
    return CLI_OK;
}

/* --- leaving ---------------------------------------------------------------------------------- */

static int explain(pid_t pid, int result) {
    switch (result) {
    case MEMTRACE_ATTACH_THERE:
        return cli_error("process %ld is profiled already: memtrace report %ld", (long)pid,
                         (long)pid);
    case MEMTRACE_ATTACH_OVER:
        return cli_error("process %ld is not profiled: it was detached from, or it ends, or it was "
                         "started with MEMTRACE=off",
                         (long)pid);
    case MEMTRACE_ATTACH_BUSY:
        return cli_error("process %ld is being attached to or detached from by another command, or "
                         "has a thread that has not run since; try again",
                         (long)pid);
    case MEMTRACE_ATTACH_NOT_OURS:
        return cli_error("process %ld has had MemTrace from its start, and keeps it: memtrace "
                         "control %ld off",
                         (long)pid, (long)pid);
    default:
        return cli_error(
            "process %ld cannot be profiled: it has no room for a profile (address space, "
            "/dev/shm, /tmp), or more rights than its user (set-uid)",
            (long)pid);
    }
}

/* Who writes the recording takes the region away when all is in it. */
static bool wait_for_end(const char *region) {
    const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t end = clock_now_ns() + (uint64_t)END_SECONDS * 1000000000;
    while (access(region, F_OK) == 0) {
        if (clock_now_ns() > end) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

static const char profile_pattern[] = "memtrace.%e.%p.mtp";
static const char recording_pattern[] = "memtrace.%e.%p.mtr";

/* Where the process of ours beside it that writes the profile was killed, there is another one. */
static int find_watcher(pid_t pid, struct memtrace_header *header, struct error *error) {
    struct memtrace_recording *recording = (void *)header->recording;
    bool is_recorded = recording->state != MEMTRACE_RECORD_NONE;
    char path[PATH_MAX];
    int result = outside_path(is_recorded ? recording_pattern : profile_pattern, pid, path, error);
    result = result == 0 ? outside_watch(pid, path, error) : -1;
    if (result > 0) {
        snprintf(is_recorded ? recording->path : header->output,
                 is_recorded ? sizeof recording->path : sizeof header->output, "%s", path);
    }
    return result < 0 ? -1 : 0;
}

/* What is there to be left. */
struct attached {
    struct region region;
    struct memtrace_header header;
    bool has_region;
    bool is_outside;
};

/* A command that was killed may have begun to attach just now. */
static void find_region(pid_t pid, struct attached *attached) {
    enum { TRIES = 20 };
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < TRIES && !attached->has_region; i++) {
        attached->has_region = region_find_header(pid, &attached->region, &attached->header) &&
                               attached->header.output[0] != '\0';
        if (!attached->has_region) {
            nanosleep(&pause, NULL);
        }
    }
}

static int call_detach(pid_t pid, bool is_forced, struct attached *attached,
                       struct attachdone *done, struct error *error) {
    struct attachcall call = {.pid = pid, .entry = MEMTRACE_DETACH_ENTRY, .settings = ""};
    struct preflight found;
    char library[PATH_MAX];
    int result = preflight_check(pid, PREFLIGHT_DETACH, NULL, is_forced, &found, error);
    attached->is_outside = found.is_outside;
    preflight_free(&found);
    if (result != 0) {
        return -1;
    }
    find_region(pid, attached);
    if (found.is_outside && attached->header.state == MEMTRACE_STATE_RUNNING &&
        find_watcher(pid, &attached->header, error) != 0) {
        return -1;
    }
    call.own_library = preload_path(library) == CLI_OK ? library : NULL;
    return attachthread_call(&call, done, error);
}

static int detach(pid_t pid, bool is_forced) {
    struct attachdone done;
    struct error error;
    struct attached attached = {0};
    const struct memtrace_recording *recording;
    const char *path;
    bool is_recorded;
    if (call_detach(pid, is_forced, &attached, &done, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (done.result != MEMTRACE_ATTACH_DONE) {
        return explain(pid, done.result);
    }
    if (!attached.has_region) {
        return cli_error("process %ld is left as it was, but its profile cannot be found",
                         (long)pid);
    }
    recording = (const void *)attached.header.recording;
    is_recorded = recording->state != MEMTRACE_RECORD_NONE;
    path = is_recorded ? recording->path : attached.header.output;
    if (((is_recorded || attached.is_outside) && !wait_for_end(attached.region.path)) ||
        access(path, F_OK) != 0) {
        return cli_error("process %ld is left as it was, but the %s %s is not complete", (long)pid,
                         is_recorded ? "recording" : "profile", path);
    }
    print_safe(stdout, "detached from process %ld, a thread was held for %.2f ms; %s %s\n",
               (long)pid, (double)done.held_ns / 1e6, is_recorded ? "recording" : "profile", path);
    return CLI_OK;
}

struct leaving {
    bool force;
};

static const struct option leaving_options[] = {
    {"force", 0, NULL, "also where its seccomp filters cannot be read, which may end it",
     OPTION_FLAG, OPTION_IN(struct leaving, force)},
    OPTION_END};

static int run_detach(int argc, char **argv) {
    struct leaving leaving = {0};
    pid_t pid;
    int status = cli_read(&detach_command, &argc, &argv, &leaving);
    if (status == CLI_OK) {
        status = read_pid(&detach_command, argc, argv, &pid);
    }
    return status == CLI_OK ? cli_finish(detach(pid, leaving.force)) : status;
}

const struct command detach_command = {
    .name = "detach",
    .run = run_detach,
    .summary = "leave a program that was attached to, and write its profile",
    .usage = "PID [--force]",
    .options = leaving_options,
    .about = "Puts back all that `memtrace attach` changed in process PID, which goes on at the "
             "speed it had before, and writes the profile.",
    .operands = "PID",
};

/* --- coming ----------------------------------------------------------------------------------- */

/* The pattern as the program is to have it, whose folder is another one. */
static void put_path(FILE *out, const char *variable, const char *pattern) {
    char *folder = pattern[0] != '/' ? getcwd(NULL, 0) : NULL;
    fprintf(out, "%s=", variable);
    for (const char *at = folder; at != NULL && *at != '\0'; at++) {
        fputs(*at == '%' ? "%%" : "", out);
        if (*at != '%') {
            fputc(*at, out);
        }
    }
    fprintf(out, "%s%s", folder != NULL ? "/" : "", pattern);
    fputc('\0', out);
    free(folder);
}

/* Written down by a process of this command's, which the library starts. */
static void put_recording(FILE *out, const char *output) {
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    put_path(out, "MEMTRACE_RECORD_OUTPUT", output);
    fputs("MEMTRACE_RECORD=1", out);
    fputc('\0', out);
    if (length > 0) {
        own[length] = '\0';
        fprintf(out, "MEMTRACE_COMMAND=%s", own);
        fputc('\0', out);
    }
}

/* The program's own standard error is not ours to write to; what it forks is not followed. An empty
 * string ends them. */
static const char always[] = "MEMTRACE_INJECT=1\0"
                             "MEMTRACE_SUMMARY=0\0"
                             "MEMTRACE_CHILDREN=none\0"
                             "MEMTRACE_LOG_LEVEL=none\0";

/* "%" as a pattern has it. */
static void put_literally(FILE *out, const char *path) {
    for (const char *at = path; *at != '\0'; at++) {
        fputs(*at == '%' ? "%%" : (char[]){*at, '\0'}, out);
    }
    fputc('\0', out);
}

static const char *pattern_of(const struct request *request) {
    return request->output != NULL ? request->output
           : request->record       ? recording_pattern
                                   : profile_pattern;
}

/* Who collects it from outside puts it there; the program says so, too, for whoever asks. */
static void put_outside(FILE *out, const struct request *request, const char *path) {
    fputs(MEMTRACE_ATTACH_OUTSIDE, out);
    fputc('\0', out);
    fputs(request->record ? "MEMTRACE_RECORD_OUTPUT=" : "MEMTRACE_OUTPUT=", out);
    put_literally(out, path);
    if (request->record) {
        fputs("MEMTRACE_RECORD=1", out);
        fputc('\0', out);
    }
}

/* outside: where the profile goes if we write it; NULL: the program does. */
static char *make_settings(const struct request *request, const char *outside, size_t *size) {
    const char *folder = getenv("MEMTRACE_REGION_DIR");
    char *settings = NULL;
    FILE *out = open_memstream(&settings, size);
    if (out == NULL) {
        return NULL;
    }
    if (outside != NULL) {
        put_outside(out, request, outside);
    } else if (request->record) {
        put_recording(out, pattern_of(request));
    } else {
        put_path(out, "MEMTRACE_OUTPUT", pattern_of(request));
    }
    if (request->sample_bytes != 0) {
        fprintf(out, "MEMTRACE_SAMPLE=%" PRIu64, request->sample_bytes);
        fputc('\0', out);
    }
    if (folder != NULL && folder[0] == '/' && outside == NULL) {
        fprintf(out, "MEMTRACE_REGION_DIR=%s", folder);
        fputc('\0', out);
    }
    fwrite(always, sizeof always, 1, out);
    return fclose(out) == 0 ? settings : NULL;
}

static int attach(pid_t pid, const char *library, const struct request *request,
                  const struct preflight *found) {
    struct attachcall call = {.pid = pid,
                              .library = library,
                              .own_library = library,
                              .is_hidden = found->is_hidden,
                              .filters = &found->filters,
                              .entry = MEMTRACE_ATTACH_ENTRY};
    struct attachdone done;
    struct error error;
    char path[PATH_MAX];
    char *settings;
    int failed;
    if (found->is_outside && outside_path(pattern_of(request), pid, path, &error) != 0) {
        return cli_error("%s", error.message);
    }
    settings = make_settings(request, found->is_outside ? path : NULL, &call.settings_size);
    if (settings == NULL) {
        return cli_error("out of memory");
    }
    call.settings = settings;
    failed = attachthread_call(&call, &done, &error);
    free(settings);
    if (failed) {
        return cli_error("%s", error.message);
    }
    if (done.result != MEMTRACE_ATTACH_DONE) {
        return explain(pid, done.result);
    }
    if (found->is_outside && outside_watch(pid, path, &error) < 0) {
        return cli_error("process %ld is attached to, but nothing writes its profile: %s",
                         (long)pid, error.message);
    }
    printf("attached to process %ld, a thread was held for %.2f ms; memtrace report %ld shows it%s",
           (long)pid, (double)done.held_ns / 1e6, (long)pid, request->for_ns != 0 ? "\n" : "");
    if (request->for_ns == 0) {
        printf(", memtrace detach %ld ends it\n", (long)pid);
    }
    return CLI_OK;
}

/* 0: the time is over, or the user has enough; 1: the program ended. */
static int wait_beside(pid_t pid, uint64_t for_ns) {
    const struct timespec pause = {.tv_nsec = 20000000};
    uint64_t end = clock_now_ns() + for_ns;
    uint64_t ticks;
    if (region_start_ticks(pid, &ticks) != 0) {
        return 1;
    }
    while (stopping_signal == 0 && clock_now_ns() < end) {
        if (!region_alive(pid, ticks)) {
            return 1;
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* A signal that comes before the program was attached to ends this command in the usual way. */
static int attach_for(pid_t pid, const char *library, const struct request *request,
                      const struct preflight *found) {
    int status = attach(pid, library, request, found);
    if (status != CLI_OK || request->for_ns == 0) {
        return status;
    }
    fflush(stdout);
    stopping_catch();
    if (wait_beside(pid, request->for_ns) != 0) {
        printf("process %ld has ended\n", (long)pid);
        return CLI_OK;
    }
    return detach(pid, request->force);
}

static int look_and_attach(pid_t pid, const char *library, const struct request *request) {
    struct preflight found;
    struct error error;
    enum preflight_purpose purpose = request->census ? PREFLIGHT_CENSUS : PREFLIGHT_ATTACH;
    int status = preflight_check(pid, purpose, library, request->force, &found, &error) != 0
                     ? cli_error("%s", error.message)
                     : CLI_OK;
    if (status == CLI_OK && request->dry_run) {
        printf("process %ld can be attached to\n", (long)pid);
    } else if (status == CLI_OK && request->census) {
        status = heapcensus_run(pid, library, &found, request->json);
    } else if (status == CLI_OK) {
        status = attach_for(pid, library, request, &found);
    }
    preflight_free(&found);
    return status;
}

static int run_attach(int argc, char **argv) {
    struct request request = {0};
    char library[PATH_MAX];
    pid_t pid;
    int status = cli_read(&attach_command, &argc, &argv, &request);
    if (status == CLI_OK) {
        status = read_pid(&attach_command, argc, argv, &pid);
    }
    if (status == CLI_OK && request.json && !request.census) {
        status = cli_usage("attach", "--json goes with --census");
    }
    if (status == CLI_OK) {
        status = preload_path(library);
    }
    if (status != CLI_OK) {
        return status;
    }
    return cli_finish(look_and_attach(pid, library, &request));
}

const struct command attach_command = {
    .name = "attach",
    .run = run_attach,
    .summary = "profile a program that runs already",
    .usage = "PID [--for TIME] [--output FILE] [--record] [--sample SIZE] | PID --dry-run | PID "
             "--census [--json]",
    .about = "Loads MemTrace into process PID, which goes on running: one of its threads is held "
             "for a fraction of a millisecond, where it holds no lock. From then on its "
             "allocations are counted; of blocks from before, how many bytes are left. `memtrace "
             "detach PID` "
             "or the program's end writes the profile, or with --record ends the recording. Where "
             "it cannot be done, nothing is "
             "touched, and the line says what would help.",
    .options = options,
    .operands = "PID",
};
