/* SPDX-License-Identifier: MIT */
/*
 * attach.c: `memtrace attach PID`: MemTrace comes into a program that runs, and `memtrace detach
 * PID`: it leaves one that it came into.
 */
#include "memtrace/attach.h"
#include "analyze/base/job.h"
#include "analyze/read/region.h"
#include "analyze/rows/safetext.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/companion.h"
#include "cli/heapcensus.h"
#include "cli/streaming.h"
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
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { END_SECONDS = 60, /* for what is left of a recording to be written */ PAUSE_MS = 10 };

/* What files are called where the user names none. */
static const char profile_pattern[] = "memtrace.%e.%p.mtp";
static const char recording_pattern[] = "memtrace.%e.%p.mtr";

/* ---- Of both ---- */

/* All process ids are understood before anything is done with one. */
static pid_t *read_pids(const struct command *command, int argc, char **argv) {
    pid_t *pids = job_array((size_t)argc, sizeof *pids);
    for (int i = 0; i < argc; i++) {
        pids[i] = cli_pid(command, argv[i]);
    }
    if (argc < 1) {
        cli_usage(command->name, "a process id is needed");
    }
    return pids;
}

/* The command that shows what a process holds. */
static const char *shown_by(pid_t pid) {
#ifdef MEMTRACE_AGENT /* which makes no reports */
    (void)pid;
    return "memtrace list";
#else
    return job_text("memtrace report %ld", (long)pid);
#endif
}

/* Why the library in the process did not do what it was asked to (enum memtrace_attach_result).
 * CLI_FAILURE. */
static int explain_result(pid_t pid, int result) {
    switch (result) {
    case MEMTRACE_ATTACH_THERE:
        return cli_error("process %ld is profiled already: %s", (long)pid, shown_by(pid));
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

/* ---- detach ---- */

/* Who writes the recording takes the region away when all is in it. */
static bool wait_for_file(const char *region) {
    uint64_t end = clock_now_ns() + (uint64_t)END_SECONDS * 1000000000;
    while (access(region, F_OK) == 0) {
        if (clock_now_ns() > end) {
            return false;
        }
        poll(NULL, 0, PAUSE_MS);
    }
    return true;
}

/* Where the process of ours beside it that writes the profile was killed, there is another one. */
static int find_watcher(pid_t pid, struct memtrace_header *header, struct error *error) {
    struct memtrace_recording *recording = (void *)header->recording;
    bool is_recorded = recording->state != MEMTRACE_RECORD_NONE;
    char path[PATH_MAX];
    int result =
        companion_path(is_recorded ? recording_pattern : profile_pattern, pid, path, error);
    result = result == 0 ? companion_watch(pid, path, false, error) : -1;
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
    for (int i = 0; i < TRIES && !attached->has_region; i++) {
        attached->has_region = region_find_header(pid, &attached->region, &attached->header) &&
                               attached->header.output[0] != '\0';
        if (!attached->has_region) {
            poll(NULL, 0, PAUSE_MS);
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
    call.own_library = target_preload(NULL, library) == CLI_OK ? library : NULL;
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

/* Leaves the program and says where its profile is. CLI_OK, or the line is printed. */
static int detach_process(pid_t pid, bool is_forced) {
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
        return explain_result(pid, done.result);
    }
    if (!attached.has_region) {
        return cli_error("process %ld is left as it was, but its profile cannot be found",
                         (long)pid);
    }
    recording = (const void *)attached.header.recording;
    is_recorded =
        memtrace_is_recorded(recording) && (recording->flags & MEMTRACE_RECORDING_MIDWAY) == 0;
    path = is_recorded ? recording->path : attached.header.output;
    is_whole = (!is_recorded && !attached.is_collected) || wait_for_file(attached.region.path);
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
    int status = CLI_OK;
    const pid_t *pids;
    cli_read(&detach_command, &argc, &argv, &leaving);
    if (leaving.all) {
        if (argc != 0) {
            cli_usage("detach", "--all leaves all of them: name no process id");
        }
        return cli_finish(detach_all(leaving.force));
    }
    pids = read_pids(&detach_command, argc, argv);
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

/* ---- attach ---- */

struct request {
    const char *output;
    uint64_t for_ns;
    uint64_t sample_bytes;
    bool record;
    bool dry_run;
    bool census;
    bool json;
    bool force;
    struct variables variables; /* of --alloc and --mode, and what streaming is to know */
};

#define IN(member) OPTION_IN(struct request, member)

static int set_output(void *context, const struct option *option, const char *value,
                      struct error *error) {
    struct request *request = context;
    request->output = value;
    return variables_check_file(option, value, error);
}

static const struct option options[] = {
    {"alloc", 0, "SPECIFICATION", VARIABLES_ALLOC_HELP, OPTION_CALL, IN(variables),
     .call = variables_add_alloc},
    {"for", 'f', "TIME", "detach after TIME, or at Ctrl-C (30s, 5m)", OPTION_DURATION, IN(for_ns),
     .least = 1},
    {"output", 'o', "FILE",
     "where the profile or recording goes (memtrace.%e.%p.mtp or .mtr; %e: program, %p: process "
     "id)",
     OPTION_CALL, .call = set_output},
    {"mode", 0, "MODE", VARIABLES_MODE_HELP, OPTION_CALL, IN(variables),
     .call = variables_add_mode},
    {"record", 'r', NULL, "make a recording of each event with its time", OPTION_FLAG, IN(record)},
    {"sample", 0, "SIZE", "count one allocation in SIZE bytes, chosen at random", OPTION_SIZE,
     IN(sample_bytes), .least = 1, .most = INT64_MAX},
#ifdef MEMTRACE_STREAM
    {"to", 0, "HOST[:PORT]|auto",
     "with --record: also send it, while it grows, to where `memtrace gather` listens", OPTION_TEXT,
     IN(variables.to)},
    {"token", 0, "FILE", "a secret that both sides know; needed between machines", OPTION_TEXT,
     IN(variables.token)},
    {"allow-control", 0, NULL,
     "with --to: the receiver may switch counting, sample and set marks (memtrace control)",
     OPTION_FLAG, IN(variables.allows_control)},
    {"linger", 0, "TIME", "how long sending the rest may take after the end (default: 60s)",
     OPTION_DURATION, IN(variables.linger_ns), .least = 1},
#endif
    {"force", 0, NULL,
     "attach even where its seccomp filters cannot be read; they may end the program", OPTION_FLAG,
     IN(force)},
    {"census", 0, NULL, "only say what its heap holds, by size and C++ class, without profiling it",
     OPTION_FLAG, IN(census)},
    {"json", 0, NULL, "with --census: as JSON", OPTION_FLAG, IN(json)},
    {"dry-run", 'n', NULL, "only say whether it can be attached to; nothing is touched",
     OPTION_FLAG, IN(dry_run)},
    OPTION_END};

static const char *pattern_of(const struct request *request) {
    return request->output != NULL ? request->output
           : request->record       ? recording_pattern
                                   : profile_pattern;
}

/* What the program is told. outside: where the profile goes if we write it, and the program says so
 * for whoever asks; NULL: the program writes it. */
static void make_settings(const struct request *request, const char *outside,
                          struct attachcall *call) {
    struct variables set = {0};
    const char *alloc = request->variables.alloc;
    const char *folder = getenv("MEMTRACE_REGION_DIR");
    const char *mode = getenv("MEMTRACE_MODE"); /* --mode, too */
    struct job_printing *literal = job_print();
    struct job_printing *settings = job_print();
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    child_put_quoted(literal->out, outside != NULL ? outside : "");
    variables_set(&set, request->record ? "MEMTRACE_RECORD_OUTPUT" : "MEMTRACE_OUTPUT",
                  outside != NULL ? job_printed(literal) : variables_absolute(pattern_of(request)));
    if (request->record) {
        variables_set(&set, "MEMTRACE_RECORD", "1");
    }
    /* This command, which the library starts to write a recording down, or to plan. */
    if (outside == NULL && (request->record || alloc != NULL) && length > 0) {
        own[length] = '\0';
        variables_set(&set, "MEMTRACE_COMMAND", own);
    }
    if (alloc != NULL) {
        variables_set(&set, "MEMTRACE_ALLOC", alloc);
    }
    if (request->sample_bytes != 0) {
        variables_set_number(&set, "MEMTRACE_SAMPLE", request->sample_bytes, "");
    }
    if (mode != NULL) {
        variables_set(&set, "MEMTRACE_MODE", mode);
    }
    if (folder != NULL && folder[0] == '/' && outside == NULL) {
        variables_set(&set, "MEMTRACE_REGION_DIR", folder);
    }
    /* Its standard error is not ours to write to; what it forks is not followed. */
    variables_set(&set, "MEMTRACE_INJECT", "1");
    variables_set(&set, "MEMTRACE_SUMMARY", "0");
    variables_set(&set, "MEMTRACE_CHILDREN", "none");
    variables_set(&set, "MEMTRACE_LOG_LEVEL", "none");
    if (outside != NULL) {
        fprintf(settings->out, "%s%c", MEMTRACE_ATTACH_OUTSIDE, '\0');
    }
    for (size_t i = 0; i < set.count; i++) {
        fprintf(settings->out, "%s=%s%c", set.list[i].name, set.list[i].value, '\0');
    }
    fputc('\0', settings->out); /* an empty string ends them */
    call->settings = job_printed(settings);
    call->settings_size = settings->size;
}

static void attach_tell(const char *line) {
    cli_error("--alloc: %s", line);
}

static struct attachalloc named_by(const struct attachimage *image, const char *library,
                                   const struct request *request) {
    return (struct attachalloc){.pid = image->pid,
                                .image = image,
                                .own_library = library,
                                .specifications = request->variables.alloc,
                                .tell = attach_tell};
}

/* Before anything is touched. */
static int check_named(const struct attachimage *image, const char *library,
                       const struct request *request) {
    const struct attachalloc named = named_by(image, library, request);
    struct error error;
    return named.specifications == NULL || attachalloc_check(&named, &error) == 0
               ? CLI_OK
               : cli_error("--alloc: %s; process %ld is as it was", error.message,
                           (long)image->pid);
}

/* Where none are named, none that were led before are. The program is attached to in any case. */
static void lead_named(const struct attachimage *image, const char *library,
                       const struct request *request, struct attachdone *done) {
    const struct attachalloc named = named_by(image, library, request);
    struct error error;
    int failed = named.specifications != NULL ? attachalloc_lead(&named, done, &error)
                                              : attachalloc_leave(image, library, done, &error);
    if (failed) {
        cli_error("--alloc: %s; process %ld is profiled without", error.message, (long)image->pid);
    }
}

static int attach_image(const struct attachimage *image, const char *library,
                        const struct request *request, const struct preflight *found) {
    pid_t pid = image->pid;
    struct attachcall call = {.pid = pid,
                              .image = image,
                              .library = library,
                              .own_library = library,
                              .is_hidden = found->is_hidden,
                              .filters = &found->filters,
                              .entry = MEMTRACE_ATTACH_ENTRY};
    struct attachdone done;
    struct error error;
    char path[PATH_MAX];
    if (found->is_outside && companion_path(pattern_of(request), pid, path, &error) != 0) {
        return cli_error("%s", error.message);
    }
    make_settings(request, found->is_outside ? path : NULL, &call);
    if (attachthread_call(&call, &done, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (done.result != MEMTRACE_ATTACH_DONE) {
        return explain_result(pid, done.result);
    }
    if (found->is_outside &&
        companion_watch(pid, path, request->variables.to != NULL, &error) < 0) {
        return cli_error("process %ld is attached to, but nothing writes its profile: %s",
                         (long)pid, error.message);
    }
    lead_named(image, library, request, &done);
    printf("attached to process %ld, a thread was held for %.2f ms; %s shows it%s", (long)pid,
           (double)done.held_ns / 1e6, shown_by(pid), request->for_ns != 0 ? "\n" : "");
    if (request->for_ns == 0) {
        printf(", memtrace detach %ld ends it\n", (long)pid);
    }
    return CLI_OK;
}

/* 0: the time is over, or the user has enough; 1: the program ended. */
static int wait_beside(pid_t pid, uint64_t for_ns) {
    uint64_t end = clock_now_ns() + for_ns;
    uint64_t ticks;
    if (region_start_ticks(pid, &ticks) != 0) {
        return 1;
    }
    while (cli_stop == 0 && clock_now_ns() < end) {
        if (!region_alive(pid, ticks)) {
            return 1;
        }
        poll(NULL, 0, PAUSE_MS);
    }
    return 0;
}

static int look_and_attach(pid_t pid, const char *library, const struct request *request) {
    struct attachimage image;
    struct preflight found;
    struct error error;
    enum preflight_purpose purpose = request->census ? PREFLIGHT_CENSUS : PREFLIGHT_ATTACH;
    int status;
    attachimage_open(pid, &image);
    status = preflight_check(&image, purpose, library, request->force, &found, &error) != 0
                 ? cli_error("%s", error.message)
                 : CLI_OK;
    found.is_outside |= request->variables.to != NULL; /* who writes it down sends it, too */
    if (status == CLI_OK && !request->census) {
        status = check_named(&image, library, request);
    }
    if (status == CLI_OK && request->dry_run) {
        printf("process %ld can be attached to%s\n", (long)pid,
               found.is_outside && request->variables.to == NULL
                   ? ", from outside: this side writes its profile"
                   : "");
    } else if (status == CLI_OK && request->census) {
        status = heapcensus_run(&image, library, &found, request->json);
    } else if (status == CLI_OK) {
        status = attach_image(&image, library, request, &found);
    }
    preflight_free(&found);
    attachimage_close(&image);
    return status;
}

/* A signal that comes before a program was attached to ends this command in the usual way. Where it
 * is not attached to, its number becomes 0. */
static int attach_each(pid_t *pids, int count, const char *library, const struct request *request) {
    uint64_t end = clock_now_ns() + request->for_ns;
    int status = CLI_OK;
    for (int i = 0; i < count; i++) {
        int one = look_and_attach(pids[i], library, request);
        status = one != CLI_OK ? one : status;
        pids[i] = one == CLI_OK ? pids[i] : 0;
    }
    if (request->for_ns == 0 || request->dry_run || request->census) {
        return status;
    }
    fflush(stdout);
    cli_catch_stop();
    for (int i = 0; i < count; i++) {
        uint64_t now = clock_now_ns();
        if (pids[i] != 0 && wait_beside(pids[i], end > now ? end - now : 1) != 0) {
            printf("process %ld has ended\n", (long)pids[i]);
        } else if (pids[i] != 0) {
            int one = detach_process(pids[i], request->force);
            status = one != CLI_OK ? one : status;
        }
    }
    return status;
}

static void check_sending(struct request *request) {
    struct variables *sending = &request->variables;
    if (sending->to == NULL &&
        (sending->token != NULL || sending->linger_ns != 0 || sending->allows_control)) {
        cli_usage("attach", "--token, --linger and --allow-control belong to --to");
    }
    if (sending->to != NULL && !request->record) {
        cli_usage("attach", "--to sends a recording: it needs --record");
    }
    if (sending->to != NULL && !request->dry_run) {
        streaming_begin(sending);
    }
}

static int run_attach(int argc, char **argv) {
    static struct request request;
    char library[PATH_MAX];
    pid_t *pids;
    int status;
    cli_read(&attach_command, &argc, &argv, &request);
    pids = read_pids(&attach_command, argc, argv);
    check_sending(&request);
    if (request.json && !request.census) {
        cli_usage("attach", "--json goes with --census");
    }
    status = target_preload(NULL, library);
    return status == CLI_OK ? cli_finish(attach_each(pids, argc, library, &request)) : status;
}

const struct command attach_command = {
    .name = "attach",
    .run = run_attach,
    .summary = "profile a program that runs already",
    .usage = "PID... [--for TIME] [--output FILE] [--record [--to HOST]] [--sample SIZE] "
             "[--alloc SPECIFICATION]... | PID... --dry-run | PID... --census [--json]",
    .about = "Loads MemTrace into process PID, which goes on running: one of its threads is held "
             "for a fraction of a millisecond, where it holds no lock. From then on its "
             "allocations are counted; of older blocks only how many bytes are left is known. "
             "`memtrace detach PID` or the program's end writes the profile, or with --record ends "
             "the recording. Where "
             "it cannot be done, nothing is "
             "touched, and the line says what would help.",
    .options = options,
    .operands = "PID",
};
