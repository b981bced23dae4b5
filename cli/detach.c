/* SPDX-License-Identifier: MIT */
/* detach.c: `memtrace detach PID`: MemTrace leaves a program that it came into. See detach.h. */
#include "cli/detach.h"

#include "memtrace/attach.h"

#include "analyze/base/job.h"
#include "analyze/read/region.h"
#include "analyze/rows/safetext.h"
#include "cli/outside.h"
#include "cli/target.h"
#include "collect/attach/attachalloc.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/attachthread.h"
#include "collect/attach/preflight.h"
#include "collect/clock.h"
#include "collect/recover.h"
#include "memtrace/events.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { END_SECONDS = 60 }; /* for what is left of a recording to be written */

int detach_read_pids(const struct command *command, int argc, char **argv, pid_t **pids) {
    *pids = job_array((size_t)argc, sizeof **pids);
    for (int i = 0; i < argc; i++) {
        uint64_t number;
        if (quantity_u64(argv[i], &number) != 0 || number == 0 || number > INT32_MAX) {
            return cli_usage(command->name, "'%s' is not a process id", argv[i]);
        }
        (*pids)[i] = (pid_t)number;
    }
    return argc < 1 ? cli_usage(command->name, "a process id is needed") : CLI_OK;
}

struct detach_shown detach_shown_by(pid_t pid) {
    struct detach_shown by;
#ifdef MEMTRACE_AGENT /* which makes no reports */
    (void)pid;
    snprintf(by.text, sizeof by.text, "memtrace list");
#else
    snprintf(by.text, sizeof by.text, "memtrace report %ld", (long)pid);
#endif
    return by;
}

int detach_explain(pid_t pid, int result) {
    switch (result) {
    case MEMTRACE_ATTACH_THERE:
        return cli_error("process %ld is profiled already: %s", (long)pid,
                         detach_shown_by(pid).text);
    case MEMTRACE_ATTACH_OVER:
        return cli_error("process %ld is not profiled: it was detached from, is ending, or was "
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

const char attach_profile_pattern[] = "memtrace.%e.%p.mtp";
const char attach_recording_pattern[] = "memtrace.%e.%p.mtr";

/* Where the process of ours beside it that writes the profile was killed, there is another one. */
static int find_watcher(pid_t pid, struct memtrace_header *header, struct error *error) {
    struct memtrace_recording *recording = (void *)header->recording;
    bool is_recorded = recording->state != MEMTRACE_RECORD_NONE;
    char path[PATH_MAX];
    int result = outside_path(is_recorded ? attach_recording_pattern : attach_profile_pattern, pid,
                              path, error);
    result = result == 0 ? outside_watch(pid, path, false, error) : -1;
    if (result > 0) {
        snprintf(is_recorded ? recording->path : header->output,
                 is_recorded ? sizeof recording->path : sizeof header->output, "%s", path);
    }
    return result < 0 ? -1 : 0;
}

/* Attached to from where it is, and left from elsewhere: it writes its profile itself, by its own
 * names of files. */
static const char *by_our_name(pid_t pid, const char *path, char own[PATH_MAX]) {
    struct stat ours;
    struct stat its;
    int length = snprintf(own, PATH_MAX, "/proc/%ld/root%s", (long)pid, path);
    bool is_same = length >= PATH_MAX || (stat(path, &ours) == 0 && stat(own, &its) == 0 &&
                                          ours.st_dev == its.st_dev && ours.st_ino == its.st_ino);
    return is_same ? path : own;
}

/* What is there to be left. */
struct attached {
    struct region region;
    struct memtrace_header header;
    bool has_region;
    bool is_outside;   /* of its namespaces or its root */
    bool is_collected; /* a process of ours beside it writes its profile */
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

/* Functions that were named. Those that cannot be left now lead to a library that lets calls pass.
 */
static void leave_named(const struct attachimage *image, const char *own_library,
                        struct attachdone *held, bool is_told) {
    struct error error;
    if (attachalloc_leave(image, own_library, held, &error) != 0 && is_told) {
        cli_error("--alloc: %s: functions lead to MemTrace yet, which lets them pass",
                  error.message);
    }
}

static int call_detach(const struct attachimage *image, bool is_forced, struct attached *attached,
                       struct attachdone *done, struct error *error) {
    pid_t pid = image->pid;
    struct attachcall call = {
        .pid = pid, .image = image, .entry = MEMTRACE_DETACH_ENTRY, .settings = ""};
    struct attachdone held = {0};
    struct preflight found;
    char library[PATH_MAX];
    int result = preflight_check(image, PREFLIGHT_DETACH, NULL, is_forced, &found, error);
    attached->is_outside = found.is_outside;
    preflight_free(&found);
    if (result != 0) {
        return -1;
    }
    find_region(pid, attached);
    attached->is_collected =
        found.is_outside && (attached->header.flags & MEMTRACE_FLAG_OUTSIDE) != 0;
    if (attached->is_collected && attached->header.state == MEMTRACE_STATE_RUNNING &&
        find_watcher(pid, &attached->header, error) != 0) {
        return -1;
    }
    call.own_library = preload_path(NULL, library) == CLI_OK ? library : NULL;
    leave_named(image, call.own_library, &held, true);
    if (attachthread_call(&call, done, error) != 0) {
        return -1;
    }
    leave_named(image, call.own_library, &held, false); /* of a library that was being opened */
    done->held_ns = held.held_ns > done->held_ns ? held.held_ns : done->held_ns;
    return 0;
}

/* It could not be written where it belongs. */
static void tell_moved(void *context, const struct recovered *recovered) {
    struct finished *moved = context;
    char line[2 * PATH_MAX];
    recover_line(recovered, line, sizeof line);
    cli_error("%s", line);
    *moved = recovered->finished;
}

int detach_process(pid_t pid, bool is_forced) {
    struct attachdone done;
    struct error error;
    struct attached attached = {0};
    const struct memtrace_recording *recording;
    struct finished moved;
    const char *path;
    char own[PATH_MAX];
    struct attachimage image;
    bool is_recorded;
    bool is_whole;
    int failed;
    attachimage_open(pid, &image);
    failed = call_detach(&image, is_forced, &attached, &done, &error);
    attachimage_close(&image);
    if (failed) {
        return cli_error("%s", error.message);
    }
    if (done.result != MEMTRACE_ATTACH_DONE) {
        return detach_explain(pid, done.result);
    }
    if (!attached.has_region) {
        return cli_error("process %ld is left as it was, but its profile cannot be found",
                         (long)pid);
    }
    recording = (const void *)attached.header.recording;
    is_recorded =
        memtrace_is_recorded(recording) && (recording->flags & MEMTRACE_RECORDING_MIDWAY) == 0;
    path = is_recorded ? recording->path : attached.header.output;
    is_whole = (!is_recorded && !attached.is_collected) || wait_for_end(attached.region.path);
    if (attached.is_outside && !attached.is_collected) {
        path = by_our_name(pid, path, own);
    }
    if (is_whole && access(path, F_OK) != 0 &&
        recover_left(attached.region.path, tell_moved, &moved)) {
        path = moved.path;
    }
    if (!is_whole || access(path, F_OK) != 0) {
        return cli_error("process %ld is left as it was, but the %s %s is not complete", (long)pid,
                         is_recorded ? "recording" : "profile", path);
    }
    print_safe(stdout, "detached from process %ld, a thread was held for %.2f ms; %s %s\n",
               (long)pid, (double)done.held_ns / 1e6, is_recorded ? "recording" : "profile", path);
    return CLI_OK;
}

struct leaving {
    bool force;
    bool all;
};

static bool is_attached(pid_t pid) {
    struct region region;
    struct memtrace_header header;
    struct attachtarget target;
    bool is_there = attachtarget_open(pid, &target, NULL) == 0;
    is_there = is_there && attachtarget_object(&target, "libmemtrace.so") != NULL;
    attachtarget_close(&target);
    return is_there && region_find_header(pid, &region, &header) &&
           header.state == MEMTRACE_STATE_RUNNING && (header.flags & MEMTRACE_FLAG_ATTACHED) != 0;
}

/* Each that may be looked at, in containers, too. */
static int detach_all(bool is_forced) {
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    int status = CLI_OK;
    size_t count = 0;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)atol(entry->d_name);
        if (isdigit((unsigned char)entry->d_name[0]) && is_attached(pid)) {
            int left = detach_process(pid, is_forced);
            status = left != CLI_OK ? left : status;
            count++;
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
    if (count == 0) {
        puts("no process is attached to");
    }
    return status;
}

static const struct option leaving_options[] = {
    {"all", 'a', NULL, "leave all programs that are attached to", OPTION_FLAG,
     OPTION_IN(struct leaving, all)},
    {"force", 0, NULL,
     "detach even where its seccomp filters cannot be read; they may end the program", OPTION_FLAG,
     OPTION_IN(struct leaving, force)},
    OPTION_END};

static int run_detach(int argc, char **argv) {
    struct leaving leaving = {0};
    pid_t *pids = NULL;
    int status = cli_read(&detach_command, &argc, &argv, &leaving);
    if (status == CLI_OK && leaving.all) {
        status = argc != 0 ? cli_usage("detach", "--all leaves all of them: name no process id")
                           : detach_all(leaving.force);
        return status == CLI_USAGE ? status : cli_finish(status);
    }
    status = status == CLI_OK ? detach_read_pids(&detach_command, argc, argv, &pids) : status;
    if (status != CLI_OK) {
        return status;
    }
    for (int i = 0; i < argc; i++) {
        int left = detach_process(pids[i], leaving.force);
        status = left != CLI_OK ? left : status;
    }
    return cli_finish(status);
}

const struct command detach_command = {
    .name = "detach",
    .run = run_detach,
    .summary = "leave a program that was attached to, and write its profile",
    .usage = "PID... [--force] | --all",
    .options = leaving_options,
    .about = "Puts back all that `memtrace attach` changed in process PID, which goes on at the "
             "speed it had before, and writes the profile.",
    .operands = "PID",
};
