/* SPDX-License-Identifier: MIT */
/*
 * attach.c: `memtrace attach PID`: MemTrace comes into a program that
 * runs. Leaving it: detach.c.
 */
#include "memtrace/attach.h"
#include "analyze/read/region.h"
#include "cli/cli.h"
#include "cli/detach.h"
#include "cli/heapcensus.h"
#include "cli/outside.h"
#include "cli/stopping.h"
#include "cli/streaming.h"
#include "cli/target.h"
#include "collect/attach/attachalloc.h"
#include "collect/attach/attachthread.h"
#include "collect/attach/preflight.h"
#include "collect/clock.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static int attach_add_alloc(void *context, const struct option *option, const char *value,
                            struct error *error) {
    struct request *request = context;
    return variables_add_alloc(&request->variables, option, value, error);
}

static int attach_add_mode(void *context, const struct option *option, const char *value,
                           struct error *error) {
    struct request *request = context;
    return variables_add_mode(&request->variables, option, value, error);
}

static int set_output(void *context, const struct option *option, const char *value,
                      struct error *error) {
    struct request *request = context;
    request->output = value;
    return variables_check_file(option, value, error);
}

static const struct option options[] = {
    {"alloc", 0, "SPECIFICATION", VARIABLES_ALLOC_HELP, OPTION_CALL, .call = attach_add_alloc},
    {"for", 'f', "TIME", "detach after TIME, or at Ctrl-C (30s, 5m)", OPTION_DURATION, IN(for_ns),
     .least = 1},
    {"output", 'o', "FILE",
     "where the profile or recording goes (memtrace.%e.%p.mtp or .mtr; %e: program, %p: process "
     "id)",
     OPTION_CALL, .call = set_output},
    {"mode", 0, "MODE", VARIABLES_MODE_HELP, OPTION_CALL, .call = attach_add_mode},
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

/* The program's own standard error is not ours to write to; what it forks is not followed. An empty
 * string ends them. */
static const char always[] = "MEMTRACE_INJECT=1\0"
                             "MEMTRACE_SUMMARY=0\0"
                             "MEMTRACE_CHILDREN=none\0"
                             "MEMTRACE_LOG_LEVEL=none\0";

static void put_setting(FILE *out, const char *name, const char *value) {
    fprintf(out, "%s=%s%c", name, value, '\0');
}

/* "%" as a pattern has it. */
static void put_literally(FILE *out, const char *path) {
    for (const char *at = path; *at != '\0'; at++) {
        fputs(*at == '%' ? "%%" : (char[]){*at, '\0'}, out);
    }
}

/* This command, which the library starts to write a recording down, or to plan (--alloc). */
static void put_command(FILE *out) {
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) {
        own[length] = '\0';
        put_setting(out, "MEMTRACE_COMMAND", own);
    }
}

static const char *pattern_of(const struct request *request) {
    return request->output != NULL ? request->output
           : request->record       ? attach_recording_pattern
                                   : attach_profile_pattern;
}

/* The pattern as the program is to have it, whose folder is another one. Who collects it from
 * outside puts it at that path; the program says so, too, for whoever asks. */
static void put_output(FILE *out, const struct request *request, const char *outside) {
    const char *pattern = outside == NULL ? pattern_of(request) : "";
    char *folder = outside == NULL && pattern[0] != '/' ? getcwd(NULL, 0) : NULL;
    fputs(request->record ? "MEMTRACE_RECORD_OUTPUT=" : "MEMTRACE_OUTPUT=", out);
    put_literally(out, outside != NULL ? outside : folder != NULL ? folder : "");
    fprintf(out, "%s%s%c", folder != NULL ? "/" : "", pattern, '\0');
    free(folder);
    if (request->record) {
        put_setting(out, "MEMTRACE_RECORD", "1");
    }
}

/* outside: where the profile goes if we write it; NULL: the program does. */
static char *make_settings(const struct request *request, const char *outside, size_t *size) {
    const char *folder = getenv("MEMTRACE_REGION_DIR");
    const char *mode = getenv("MEMTRACE_MODE"); /* --mode, too */
    char *settings = NULL;
    FILE *out = open_memstream(&settings, size);
    if (out == NULL) {
        return NULL;
    }
    if (outside != NULL) {
        fprintf(out, "%s%c", MEMTRACE_ATTACH_OUTSIDE, '\0');
    }
    put_output(out, request, outside);
    if (outside == NULL && (request->record || request->variables.alloc != NULL)) {
        put_command(out);
    }
    if (request->variables.alloc != NULL) {
        put_setting(out, "MEMTRACE_ALLOC", request->variables.alloc);
    }
    if (request->sample_bytes != 0) {
        fprintf(out, "MEMTRACE_SAMPLE=%" PRIu64 "%c", request->sample_bytes, '\0');
    }
    if (mode != NULL) {
        put_setting(out, "MEMTRACE_MODE", mode);
    }
    if (folder != NULL && folder[0] == '/' && outside == NULL) {
        put_setting(out, "MEMTRACE_REGION_DIR", folder);
    }
    fwrite(always, sizeof always, 1, out);
    return fclose(out) == 0 ? settings : NULL;
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

static int attach(const struct attachimage *image, const char *library,
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
        return detach_explain(pid, done.result);
    }
    if (found->is_outside && outside_watch(pid, path, request->variables.to != NULL, &error) < 0) {
        return cli_error("process %ld is attached to, but nothing writes its profile: %s",
                         (long)pid, error.message);
    }
    lead_named(image, library, request, &done);
    printf("attached to process %ld, a thread was held for %.2f ms; %s shows it%s", (long)pid,
           (double)done.held_ns / 1e6, detach_shown_by(pid).text, request->for_ns != 0 ? "\n" : "");
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
        status = attach(&image, library, request, &found);
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
    stopping_catch();
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

static int check_sending(struct request *request) {
    struct variables *sending = &request->variables;
    if (sending->to == NULL &&
        (sending->token != NULL || sending->linger_ns != 0 || sending->allows_control)) {
        return cli_usage("attach", "--token, --linger and --allow-control belong to --to");
    }
    if (sending->to != NULL && !request->record) {
        return cli_usage("attach", "--to sends a recording: it needs --record");
    }
    return sending->to != NULL && !request->dry_run ? streaming_begin(sending) : CLI_OK;
}

static int run_attach(int argc, char **argv) {
    static struct request request;
    char library[PATH_MAX];
    pid_t *pids = NULL;
    int status = cli_read(&attach_command, &argc, &argv, &request);
    status = status == CLI_OK ? detach_read_pids(&attach_command, argc, argv, &pids) : status;
    status = status == CLI_OK ? check_sending(&request) : status;
    if (status == CLI_OK && request.json && !request.census) {
        status = cli_usage("attach", "--json goes with --census");
    }
    status = status == CLI_OK ? preload_path(NULL, library) : status;
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
