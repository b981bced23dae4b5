/* SPDX-License-Identifier: MIT */
/*
 * replaychild.c: `memtrace replay-child`: makes the allocations of a file by whatever malloc the
 * process has, and tells how long that took and how much memory it had. docs/replay.md says how it
 * is measured.
 *
 * Events and slots lie in shared memory that is touched before, so that what grows meanwhile is the
 * allocator's alone.
 */
#include "cli/replaychild.h"

#include "analyze/export/replayfile.h"
#include "cli/cli.h"

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
#include <time.h>
#include <unistd.h>

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
    size_t count;
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

static void *allocate(const struct step *step, void *old) {
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

static void touch(volatile char *block, size_t size) {
    for (size_t at = 0; at < size; at += PAGE) {
        block[at] = 1;
    }
    if (size != 0) {
        block[size - 1] = 1;
    }
}

/* A null pointer for 0 bytes is a block. */
static void take(struct replaychild *child, const struct step *step, struct slot *slot) {
    if (step->operation == REPLAYFILE_FREE) {
        free(slot->block);
        return;
    }
    slot->block = allocate(step, slot->block);
    if (slot->block == NULL && step->size != 0) {
        atomic_store(&child->has_failed, true);
    } else if (child->touches) {
        touch(slot->block, step->size);
    }
}

/* Another thread may have to come first. false: it never will. */
static bool wait_for_turn(struct replaychild *child, const struct step *step,
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

static void *work(void *context) {
    const struct worker *worker = context;
    struct replaychild *child = worker->child;
    pthread_barrier_wait(&child->ready);
    for (size_t i = worker->from; i < worker->end && !atomic_load(&child->has_failed); i++) {
        const struct step *step = &child->steps[i];
        struct slot *slot = &child->slots[step->slot];
        if (!wait_for_turn(child, step, slot)) {
            break;
        }
        take(child, step, slot);
        atomic_store_explicit(&slot->turn, step->turn + 1, memory_order_release);
    }
    pthread_barrier_wait(&child->over);
    return NULL;
}

/* ---- What there is to do ---- */

/* Shared pages, all there. NULL: out of memory. */
static void *shared(size_t size) {
    void *bytes =
        mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    memset(bytes, 0, size + PAGE);
    return bytes;
}

/* starts: of each thread's steps in `steps`, moved on; NULL: all follow each other as in the file.
 */
static void fill(struct replaychild *child, const struct replayfile *file, size_t *starts) {
    struct replayfile_reader reader;
    struct replayfile_event event;
    size_t next = 0;
    replayfile_start(&reader, file);
    while (replayfile_next(&reader, &event) == 1) {
        uint32_t turn = atomic_load(&child->slots[event.slot].turn);
        size_t *place = starts != NULL ? &starts[event.thread] : &next;
        child->steps[(*place)++] = (struct step){.size = event.size,
                                                 .slot = (uint32_t)event.slot,
                                                 .turn = turn,
                                                 .operation = (uint8_t)event.operation,
                                                 .alignment = (uint8_t)event.alignment};
        atomic_store(&child->slots[event.slot].turn, turn + 1);
    }
    for (uint64_t slot = 0; slot < file->foot.slots; slot++) {
        atomic_store(&child->slots[slot].turn, 0);
    }
}

/* By thread, one behind the other. */
static size_t count_threads(const struct replayfile *file, size_t *starts) {
    struct replayfile_reader reader;
    struct replayfile_event event;
    size_t start = 0;
    size_t threads = 0;
    replayfile_start(&reader, file);
    while (replayfile_next(&reader, &event) == 1) {
        starts[event.thread]++;
    }
    for (size_t thread = 0; thread < REPLAYFILE_THREADS; thread++) {
        size_t count = starts[thread];
        starts[thread] = start;
        start += count;
        threads += count != 0;
    }
    return threads;
}

/* ---- Measuring ---- */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The process's status says so many KiB behind this name. Allocates nothing. */
static uint64_t status_bytes(const char *name) {
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

static void reset_peak(void) {
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "5", 1) != 1) {
            /* the peak so far stays: it is that of reading the file */
        }
        close(fd);
    }
}

static uint64_t beyond(uint64_t bytes, uint64_t before) {
    return bytes > before ? bytes - before : 0;
}

static void measure(struct replaychild *child, struct replaychild_result *result) {
    uint64_t before_bytes;
    uint64_t start_ns;
    reset_peak();
    before_bytes = status_bytes("VmRSS:");
    start_ns = now_ns();
    pthread_barrier_wait(&child->ready);
    pthread_barrier_wait(&child->over);
    result->time_ns = now_ns() - start_ns;
    result->peak_bytes = beyond(status_bytes("VmHWM:"), before_bytes);
    result->end_bytes = beyond(status_bytes("VmRSS:"), before_bytes);
    if (atomic_load(&child->has_failed)) {
        snprintf(result->message, sizeof result->message, "out of memory");
    }
}

/* ---- Threads ---- */

static int start_workers(struct worker *workers, size_t count) {
    pthread_barrier_init(&workers->child->ready, NULL, (unsigned)count + 1);
    pthread_barrier_init(&workers->child->over, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        int reason = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        if (reason != 0) {
            errno = reason;
            return -1;
        }
    }
    return 0;
}

/* Their number; 0: out of memory. */
static size_t share_out(struct replaychild *child, const struct replayfile *file, bool threads,
                        struct worker **workers) {
    size_t *starts = calloc(REPLAYFILE_THREADS + 1, sizeof *starts);
    size_t count = 1;
    size_t from = 0;
    if (starts == NULL) {
        return 0;
    }
    if (threads) {
        count = count_threads(file, starts);
        fill(child, file, starts); /* now each is where the next one's begin */
    } else {
        fill(child, file, NULL);
        starts[0] = child->count;
    }
    *workers = calloc(count + 1, sizeof **workers);
    for (size_t thread = 0, at = 0; *workers != NULL && thread < REPLAYFILE_THREADS; thread++) {
        if (starts[thread] > from) {
            (*workers)[at++] = (struct worker){.child = child, .from = from, .end = starts[thread]};
            from = starts[thread];
        }
    }
    free(starts);
    return *workers != NULL ? count : 0;
}

/* ---- The command ---- */

/* The library that was to be loaded has the malloc that the program calls. */
static bool is_from(const char *library) {
    Dl_info found;
    char *wanted = realpath(library, NULL);
    char *there =
        dladdr(dlsym(RTLD_DEFAULT, "malloc"), &found) != 0 ? realpath(found.dli_fname, NULL) : NULL;
    bool is_same = wanted != NULL && there != NULL && strcmp(wanted, there) == 0;
    free(wanted);
    free(there);
    return is_same;
}

static void replay(const char *path, bool touches, bool threads,
                   struct replaychild_result *result) {
    struct replaychild child = {.touches = touches};
    struct replayfile file;
    struct worker *workers = NULL;
    struct error error = {""};
    size_t count;
    if (replayfile_open(&file, path, &error) != 0) {
        snprintf(result->message, sizeof result->message, "%s", error.message);
        return;
    }
    child.count = file.foot.events;
    child.steps = shared(child.count * sizeof *child.steps);
    child.slots = shared(file.foot.slots * sizeof *child.slots);
    count = child.steps != NULL && child.slots != NULL
                ? share_out(&child, &file, threads && child.count != 0, &workers)
                : 0;
    replayfile_close(&file);
    if (count == 0) {
        snprintf(result->message, sizeof result->message, "out of memory");
    } else if (workers[0].child == NULL) {
        return; /* nothing was allocated */
    } else if (start_workers(workers, count) != 0) {
        snprintf(result->message, sizeof result->message, "cannot start a thread: %s",
                 strerror(errno));
    } else {
        measure(&child, result);
    }
}

/* FILE FD LIBRARY TOUCH THREADS. What is left in memory goes with the process. */
static int run_replaychild(int argc, char **argv) {
    struct replaychild_result result = {.time_ns = 0};
    int fd;
    if (argc != 6) {
        return cli_usage("replay-child", "started by memtrace replay");
    }
    fd = atoi(argv[2]);
    if (argv[3][0] != '\0' && !is_from(argv[3])) {
        snprintf(result.message, sizeof result.message, "it could not be loaded or has no malloc");
    } else {
        replay(argv[1], argv[4][0] == '1', argv[5][0] == '1', &result);
    }
    _exit(write(fd, &result, sizeof result) == (ssize_t)sizeof result ? CLI_OK : CLI_FAILURE);
}

const struct command replaychild_command = {
    .name = "replay-child",
    .run = run_replaychild,
};
