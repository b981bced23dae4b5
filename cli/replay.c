/* SPDX-License-Identifier: MIT */
/*
 * replay.c: `memtrace replay`: a recording's allocations by other allocators. docs/replay.md is its
 * page.
 *
 * They are made by processes: this program again, with the other allocator loaded first, `memtrace
 * replay-child FILE FD LIBRARY TOUCH THREADS`, not for people. It makes the allocations by whatever
 * malloc it has, and tells how long that took and how much memory it had. Events and slots lie in
 * shared memory that is touched before, so that what grows meanwhile is the allocator's alone.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/export/replayfile.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "cli/cli.h"
#include "collect/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What the two say to each other ---- */

/* Written to FD as a whole, once. */
struct replaychild_result {
    uint64_t time_ns;
    uint64_t peak_bytes; /* resident, beyond what was before the first allocation */
    uint64_t end_bytes;  /* likewise, behind the last event */
    char message[512];   /* not empty: why there is nothing to tell */
};

/* ---- The process that allocates ---- */

enum { PAGE = 4096, LOOKS = 200 };

struct step {
    uint64_t size;
    uint32_t slot;
    uint32_t turn; /* events that the slot has had before */
    uint8_t operation;
    uint8_t alignment;
};

struct slot {
    void *block;
    _Atomic uint32_t turn; /* events that it has had */
};

struct replaychild {
    struct step *steps; /* by thread where there are several, else in order */
    struct slot *slots;
    bool touches;
    _Atomic bool has_failed; /* no memory for a block */
    pthread_barrier_t ready;
    pthread_barrier_t over;
};

struct worker {
    struct replaychild *child;
    size_t from;
    size_t end;
    pthread_t thread;
};

/* ---- One step ---- */

static void *replaychild_allocate(const struct step *step, void *old) {
    void *block = NULL;
    switch ((enum replayfile_operation)step->operation) {
    case REPLAYFILE_CALLOC:
        return calloc(1, step->size);
    case REPLAYFILE_REALLOC:
        return realloc(old, step->size != 0 ? step->size : 1); /* of 0 bytes it may be a free */
    case REPLAYFILE_ALIGNED:
        return posix_memalign(&block, (size_t)1 << (step->alignment < 3 ? 3 : step->alignment),
                              step->size) == 0
                   ? block
                   : NULL;
    default:
        return malloc(step->size);
    }
}

static void replaychild_touch(volatile char *block, size_t size) {
    for (size_t at = 0; at < size; at += PAGE) {
        block[at] = 1;
    }
    if (size != 0) {
        block[size - 1] = 1;
    }
}

/* A null pointer for 0 bytes is a block. */
static void replaychild_take(struct replaychild *child, const struct step *step,
                             struct slot *slot) {
    if (step->operation == REPLAYFILE_FREE) {
        free(slot->block);
        return;
    }
    slot->block = replaychild_allocate(step, slot->block);
    if (slot->block == NULL && step->size != 0) {
        atomic_store(&child->has_failed, true);
    } else if (child->touches) {
        replaychild_touch(slot->block, step->size);
    }
}

/* Another thread may have to come first. false: it never will. */
static bool replaychild_wait_for_turn(struct replaychild *child, const struct step *step,
                                      const struct slot *slot) {
    for (int look = 0; atomic_load_explicit(&slot->turn, memory_order_acquire) != step->turn;
         look++) {
        if (look >= LOOKS) {
            sched_yield();
        }
        if (atomic_load_explicit(&child->has_failed, memory_order_relaxed)) {
            return false;
        }
    }
    return true;
}

static void *replaychild_work(void *context) {
    const struct worker *worker = context;
    struct replaychild *child = worker->child;
    pthread_barrier_wait(&child->ready);
    for (size_t i = worker->from; i < worker->end && !atomic_load(&child->has_failed); i++) {
        const struct step *step = &child->steps[i];
        struct slot *slot = &child->slots[step->slot];
        if (!replaychild_wait_for_turn(child, step, slot)) {
            break;
        }
        replaychild_take(child, step, slot);
        atomic_store_explicit(&slot->turn, step->turn + 1, memory_order_release);
    }
    pthread_barrier_wait(&child->over);
    return NULL;
}

/* ---- What there is to do ---- */

/* Shared pages, all there. */
static void *replaychild_shared(size_t size) {
    void *bytes =
        mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        job_fail_memory();
    }
    return memset(bytes, 0, size + PAGE);
}

/* By thread, one behind the other; all of one thread where not as many are wanted. Returns how many
 * threads there are; where each one's steps end is in starts[] then. */
static size_t replaychild_fill(struct replaychild *child, const struct replayfile *file,
                               bool threads, size_t *starts) {
    struct replayfile_reader reader;
    struct replayfile_event event;
    size_t start = 0;
    size_t count = 0;
    replayfile_start(&reader, file);
    while (replayfile_next(&reader, &event) == 1) {
        starts[threads ? event.thread : 0]++;
    }
    for (size_t thread = 0; thread < REPLAYFILE_THREADS; thread++) {
        size_t steps = starts[thread];
        starts[thread] = start;
        start += steps;
        count += steps != 0;
    }
    replayfile_start(&reader, file);
    while (replayfile_next(&reader, &event) == 1) {
        uint32_t turn = atomic_load(&child->slots[event.slot].turn);
        child->steps[starts[threads ? event.thread : 0]++] =
            (struct step){.size = event.size,
                          .slot = (uint32_t)event.slot,
                          .turn = turn,
                          .operation = (uint8_t)event.operation,
                          .alignment = (uint8_t)event.alignment};
        atomic_store(&child->slots[event.slot].turn, turn + 1);
    }
    for (uint64_t slot = 0; slot < file->foot.slots; slot++) {
        atomic_store(&child->slots[slot].turn, 0);
    }
    return count;
}

/* ---- Measuring ---- */

/* The process's status says so many KiB behind this name. Allocates nothing. */
static uint64_t replaychild_status_bytes(const char *name) {
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    const char *found;
    if (fd >= 0) {
        close(fd);
    }
    text[size > 0 ? size : 0] = '\0';
    found = strstr(text, name);
    return found != NULL ? strtoull(found + strlen(name), NULL, 10) * 1024 : 0;
}

static void replaychild_reset_peak(void) {
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "5", 1) != 1) {
            /* the peak so far stays: it is that of reading the file */
        }
        close(fd);
    }
}

static uint64_t replaychild_beyond(uint64_t bytes, uint64_t before) {
    return bytes > before ? bytes - before : 0;
}

static void replaychild_measure(struct replaychild *child, struct replaychild_result *result) {
    uint64_t before_bytes;
    uint64_t start_ns;
    replaychild_reset_peak();
    before_bytes = replaychild_status_bytes("VmRSS:");
    start_ns = clock_now_ns();
    pthread_barrier_wait(&child->ready);
    pthread_barrier_wait(&child->over);
    result->time_ns = clock_now_ns() - start_ns;
    result->peak_bytes = replaychild_beyond(replaychild_status_bytes("VmHWM:"), before_bytes);
    result->end_bytes = replaychild_beyond(replaychild_status_bytes("VmRSS:"), before_bytes);
    if (atomic_load(&child->has_failed)) {
        snprintf(result->message, sizeof result->message, "out of memory");
    }
}

/* ---- Threads ---- */

/* What each of the threads has to do. Their number. */
static size_t replaychild_share_out(struct replaychild *child, const struct replayfile *file,
                                    bool threads, struct worker **workers) {
    size_t *ends = job_array(REPLAYFILE_THREADS, sizeof *ends);
    size_t count = replaychild_fill(child, file, threads, ends);
    size_t from = 0;
    *workers = job_array(count + 1, sizeof **workers);
    for (size_t thread = 0, at = 0; thread < REPLAYFILE_THREADS; thread++) {
        if (ends[thread] > from) {
            (*workers)[at++] = (struct worker){.child = child, .from = from, .end = ends[thread]};
            from = ends[thread];
        }
    }
    return count;
}

/* The library that was to be loaded has the malloc that the program calls. */
static bool replaychild_is_from(const char *library) {
    Dl_info found;
    char *wanted = realpath(library, NULL);
    char *there =
        dladdr(dlsym(RTLD_DEFAULT, "malloc"), &found) != 0 ? realpath(found.dli_fname, NULL) : NULL;
    bool is_same = wanted != NULL && there != NULL && strcmp(wanted, there) == 0;
    free(wanted);
    free(there);
    return is_same;
}

/* FILE FD LIBRARY TOUCH THREADS. */
struct childwork {
    char **arguments;
    struct replaychild_result result;
};

/* A job whose end is told. What is left in memory goes with the process. */
static void replay_in_child(void *what) {
    struct childwork *childwork = what;
    char **arguments = childwork->arguments;
    struct replaychild *child = job_alloc(sizeof *child);
    struct replayfile file;
    struct worker *workers;
    struct error error;
    size_t count;
    if (arguments[2][0] != '\0' && !replaychild_is_from(arguments[2])) {
        job_fail("it could not be loaded or has no malloc");
    }
    job_check(replayfile_open(&file, arguments[0], &error), &error);
    child->touches = arguments[3][0] == '1';
    child->steps = replaychild_shared(file.foot.events * sizeof *child->steps);
    child->slots = replaychild_shared(file.foot.slots * sizeof *child->slots);
    count = replaychild_share_out(child, &file, arguments[4][0] == '1', &workers);
    replayfile_close(&file);
    if (workers[0].child == NULL) {
        return; /* nothing was allocated */
    }
    pthread_barrier_init(&child->ready, NULL, (unsigned)count + 1);
    pthread_barrier_init(&child->over, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        int reason = pthread_create(&workers[i].thread, NULL, replaychild_work, &workers[i]);
        if (reason != 0) {
            job_fail("cannot start a thread: %s", strerror(reason));
        }
    }
    replaychild_measure(child, &childwork->result);
}

static int run_replaychild(int argc, char **argv) {
    struct childwork childwork = {.arguments = argv + 1};
    struct replaychild_result *result = &childwork.result;
    struct error error;
    int fd;
    if (argc != 6) {
        cli_usage("replay-child", "started by memtrace replay");
    }
    fd = atoi(argv[2]);
    if (job_run(replay_in_child, &childwork, NULL, &error) != 0) {
        snprintf(result->message, sizeof result->message, "%s", error.message);
    }
    _exit(write(fd, result, sizeof *result) == (ssize_t)sizeof *result ? CLI_OK : CLI_FAILURE);
}

const struct command replaychild_command = {
    .name = "replay-child",
    .run = run_replaychild,
};

/* ---- The command line ---- */

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

/* ---- Starting such a process ---- */

/* Where the file is named by a relative path, or the library, both stay where they are. */
static void replay_become_child(const struct request *request, const char *allocator, int fd) {
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

/* What it has to tell. 0, or -1 with a message. */
static int replay_once(const struct request *request, const char *allocator,
                       struct replaychild_result *result) {
    int ends[2];
    int status = 0;
    ssize_t size;
    pid_t pid;
    if (pipe(ends) != 0) {
        snprintf(result->message, sizeof result->message, "%s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        replay_become_child(request, allocator, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        snprintf(result->message, sizeof result->message, "%s", strerror(errno));
        close(ends[0]);
        return -1;
    }
    do {
        size = read(ends[0], result, sizeof *result);
    } while (size < 0 && errno == EINTR);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    if (size != (ssize_t)sizeof *result) {
        *result = (struct replaychild_result){.time_ns = 0};
        snprintf(result->message, sizeof result->message, "its process ended early, %s %d",
                 WIFSIGNALED(status) ? "by signal" : "with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return result->message[0] == '\0' ? 0 : -1;
}

/* The fastest of all times; the peak is the highest. */
static int replay_all_times(const struct request *request, const char *allocator,
                            struct replaychild_result *best) {
    for (unsigned i = 0; i < request->times; i++) {
        struct replaychild_result result = {.time_ns = 0};
        if (replay_once(request, allocator, &result) != 0) {
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

static const char *allocator_name(const char *allocator) {
    return allocator[0] == '\0' ? "default" : pathname_base(allocator);
}

static int replay_compare(const struct request *request, uint64_t events) {
    int status = CLI_OK;
    printf("%-24s %12s %14s %12s %12s\n", "allocator", "time", "events/s", "peak RSS",
           "RSS at end");
    for (size_t i = 0; i < request->count; i++) {
        const char *allocator = request->allocators[i];
        struct replaychild_result result = {.time_ns = 0};
        struct number n[3];
        double seconds;
        if (replay_all_times(request, allocator, &result) != 0) {
            status = cli_error("%s: %s", allocator_name(allocator), result.message);
            continue;
        }
        seconds = (double)result.time_ns / 1e9;
        print_safe(stdout, "%-24s %10.3f s %14s %12s %12s\n", allocator_name(allocator), seconds,
                   number_count(&n[0], seconds > 0 ? (uint64_t)((double)events / seconds) : 0),
                   number_bytes(&n[1], result.peak_bytes), number_bytes(&n[2], result.end_bytes));
    }
    return status;
}

static int run_replay(int argc, char **argv) {
    struct request request = {.allocators = {""}, .count = 1, .times = 1};
    struct replayfile file;
    const struct replayfile_foot *foot = &file.foot;
    struct number n[4];
    struct error error;
    int status;
    cli_read(&replay_command, &argc, &argv, &request);
    request.file =
        cli_one(&replay_command, argc, argv, "a file of `memtrace export --format replay`");
    job_check(replayfile_open(&file, request.file, &error), &error);
    if (file.unpacked >= 0) {
        snprintf(request.unpacked, sizeof request.unpacked, "/proc/self/fd/%d", file.unpacked);
    }
    print_safe(stdout, "%s: %s of %s, %s, at most %s at once\n", request.file,
               number_items(&n[0], foot->allocations, "allocation"),
               number_bytes(&n[1], foot->total_bytes), number_items(&n[2], foot->frees, "free"),
               number_items(&n[3], foot->slots, "block"));
    status = replay_compare(&request, foot->events);
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
