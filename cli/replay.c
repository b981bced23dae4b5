/* SPDX-License-Identifier: MIT */
/* replay.c: `memtrace replay`: a recording's allocations by other allocators. docs/replay.md is its
 * page. */
#include "analyze/base/pathname.h"
#include "analyze/export/replayfile.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "cli/replaychild.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOCATORS = 16 };

struct request {
    const char *allocators[ALLOCATORS + 1]; /* ""; then those that were named */
    size_t count;
    bool threads;
    bool touch;
    unsigned times;
    const char *file;
    char unpacked[32]; /* where a process finds what was packed in the file; else "" */
};

static int take_allocator(void *member, const struct option *option, const char *value,
                          struct error *error) {
    struct request *request = member;
    (void)option;
    if (request->count > ALLOCATORS) {
        return error_set(error, "at most %d allocators at once", ALLOCATORS);
    }
    if (access(value, R_OK) != 0 || strpbrk(value, " :") != NULL) {
        return error_set(error, "--allocator %s: %s", value,
                         access(value, R_OK) != 0 ? strerror(errno)
                                                  : "the loader takes no spaces or colons");
    }
    request->allocators[request->count++] = value;
    return 0;
}

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"allocator", 'a', "FILE",
     "also with the malloc of this library, such as libjemalloc.so.2; may be repeated", OPTION_CALL,
     .call = take_allocator},
    {"threads", 0, NULL, "use as many threads as the program had, not one", OPTION_FLAG,
     IN(threads)},
    {"touch", 0, NULL, "write to each page of each block, as most programs do", OPTION_FLAG,
     IN(touch)},
    {"times", 'n', "N", "repeat it N times and show the fastest (default: 1)", OPTION_NUMBER,
     IN(times), .least = 1, .most = 1000},
    OPTION_END};

/* ---- A process ---- */

/* Where the file is named by a relative path, or the library, both stay where they are. */
static void become_child(const struct request *request, const char *allocator, int fd) {
    const char *loaded = getenv("LD_PRELOAD");
    char number[16];
    char *preload = NULL;
    char *arguments[] = {
        (char *)(uintptr_t) "memtrace",
        (char *)(uintptr_t) "replay-child",
        (char *)(uintptr_t)(request->unpacked[0] != '\0' ? request->unpacked : request->file),
        number,
        (char *)(uintptr_t)allocator,
        (char *)(uintptr_t)(request->touch ? "1" : "0"),
        (char *)(uintptr_t)(request->threads ? "1" : "0"),
        NULL};
    snprintf(number, sizeof number, "%d", fd);
    if (allocator[0] != '\0' && (asprintf(&preload, "%s%s%s", allocator, loaded != NULL ? ":" : "",
                                          loaded != NULL ? loaded : "") < 0 ||
                                 setenv("LD_PRELOAD", preload, 1) != 0)) {
        _exit(CLI_FAILURE);
    }
    execv("/proc/self/exe", arguments);
    _exit(CLI_FAILURE);
}

/* Reads what it has to tell. 0, or -1 with a message. */
static int reap(pid_t pid, int fd, struct replaychild_result *result) {
    ssize_t size;
    int status = 0;
    do {
        size = read(fd, result, sizeof *result);
    } while (size < 0 && errno == EINTR);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (size != (ssize_t)sizeof *result) {
        *result = (struct replaychild_result){.time_ns = 0};
        snprintf(result->message, sizeof result->message, "its process ended early, %s %d",
                 WIFSIGNALED(status) ? "by signal" : "with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return result->message[0] == '\0' ? 0 : -1;
}

static int run_once(const struct request *request, const char *allocator,
                    struct replaychild_result *result) {
    int ends[2];
    pid_t pid;
    if (pipe(ends) != 0) {
        snprintf(result->message, sizeof result->message, "%s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_child(request, allocator, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        snprintf(result->message, sizeof result->message, "%s", strerror(errno));
        close(ends[0]);
        return -1;
    }
    int status = reap(pid, ends[0], result);
    close(ends[0]);
    return status;
}

/* The fastest of all times; the peak is the highest. */
static int run_all(const struct request *request, const char *allocator,
                   struct replaychild_result *best) {
    for (unsigned i = 0; i < request->times; i++) {
        struct replaychild_result result = {.time_ns = 0};
        if (run_once(request, allocator, &result) != 0) {
            *best = result;
            return -1;
        }
        if (i == 0 || result.time_ns < best->time_ns) {
            *best = result;
        }
    }
    return 0;
}

/* ---- The command ---- */

static const char *name_of(const char *allocator) {
    return allocator[0] == '\0' ? "default" : pathname_base(allocator);
}

static void tell_file(const char *path, const struct replayfile_foot *foot) {
    struct number n[4];
    print_safe(stdout, "%s: %s of %s, %s, at most %s at once\n", path,
               number_items(&n[0], foot->allocations, "allocation"),
               number_bytes(&n[1], foot->total_bytes), number_items(&n[2], foot->frees, "free"),
               number_items(&n[3], foot->slots, "block"));
}

static int compare(const struct request *request, uint64_t events) {
    int status = CLI_OK;
    printf("%-24s %12s %14s %12s %12s\n", "allocator", "time", "events/s", "peak RSS",
           "RSS at end");
    for (size_t i = 0; i < request->count; i++) {
        const char *allocator = request->allocators[i];
        struct replaychild_result result = {.time_ns = 0};
        struct number n[3];
        double seconds;
        if (run_all(request, allocator, &result) != 0) {
            status = cli_error("%s: %s", name_of(allocator), result.message);
            continue;
        }
        seconds = (double)result.time_ns / 1e9;
        print_safe(stdout, "%-24s %10.3f s %14s %12s %12s\n", name_of(allocator), seconds,
                   number_count(&n[0], seconds > 0 ? (uint64_t)((double)events / seconds) : 0),
                   number_bytes(&n[1], result.peak_bytes), number_bytes(&n[2], result.end_bytes));
    }
    return status;
}

static int run_replay(int argc, char **argv) {
    struct request request = {.allocators = {""}, .count = 1, .times = 1};
    struct replayfile file;
    struct error error = {""};
    int status = cli_read(&replay_command, &argc, &argv, &request);
    if (status == CLI_OK) {
        status = cli_one(&replay_command, argc, argv, "a file of `memtrace export --format replay`",
                         &request.file);
    }
    if (status != CLI_OK) {
        return status;
    }
    if (replayfile_open(&file, request.file, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (file.unpacked >= 0) {
        snprintf(request.unpacked, sizeof request.unpacked, "/proc/self/fd/%d", file.unpacked);
    }
    tell_file(request.file, &file.foot);
    status = compare(&request, file.foot.events);
    replayfile_close(&file);
    return cli_finish(status);
}

const struct command replay_command = {
    .name = "replay",
    .run = run_replay,
    .summary = "repeat a recording's allocations with other allocators",
    .usage = "[OPTION]... FILE",
    .about = "Makes the allocations of a file that memtrace export wrote in the format replay once "
             "more, in a process of its own, with the allocator of the system and with each "
             "that is named: how long that takes, how much memory it needs.",
    .options = options,
    .operands = "FILE",
};
