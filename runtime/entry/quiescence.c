/* SPDX-License-Identifier: MIT */
/*
 * quiescence.c: waiting until each thread has left the runtime. See quiescence.h.
 *
 * The slow halves of events say so in the gate. The fast ones do not; but they never sleep, and are
 * over within microseconds of processor time. So a thread that sleeps, or that has run for so long
 * since, has left them. One that waits for a processor, or is stopped, may still stand in one.
 */
#define _GNU_SOURCE
#include "runtime/entry/quiescence.h"

#include "runtime/base/proc.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/thread.h"

#include <fcntl.h>

enum {
    MOST_THREADS = 1 << 15,
    RUN_NS = 2 * 1000 * 1000,
    LOOK_NS = 5 * 1000 * 1000,
    LEAST_NS = 4 * LOOK_NS,
    /* A gate that is closed longer was left by a longjmp. */
    GATES_NS = 1500 * 1000 * 1000,
};

struct waiting {
    uint32_t tid; /* 0: it has been outside */
    uint64_t ran_ns;
};

static void quiescence_add(struct quiescence *quiet, uint32_t tid) {
    struct waiting *waiting = &quiet->thread[quiet->count];
    if (tid == 0 || tid == sys_gettid()) {
        return;
    }
    if (quiet->count == MOST_THREADS) {
        quiet->is_whole = 0;
    } else if (sys_thread_time_ns(tid, &waiting->ran_ns) == 0) {
        waiting->tid = tid;
        quiet->count++;
    }
}

static void quiescence_find_threads(struct quiescence *quiet) {
    char buffer[4096] __attribute__((aligned(8)));
    long fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    long size = fd;
    quiet->is_whole = 1;
    while (fd >= 0 && (size = sys_list((int)fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const struct sys_entry *entry = (const void *)(buffer + at);
            const char *name = entry->name;
            quiescence_add(quiet, (uint32_t)text_read_number(&name));
            at += entry->size_bytes;
        }
    }
    quiet->is_whole &= size == 0;
    sys_close(fd);
}

/* As proc_read() does, of a file in a folder of that number. */
static long quiescence_read(const char *base, uint32_t number, const char *name, char *buffer,
                            size_t size) {
    text_print(buffer, size, "%s%u%s", base, number, name);
    return proc_read(buffer, buffer, size);
}

/* Behind the name in parentheses; 0: not known. */
static char quiescence_state(const char *base, uint32_t number) {
    char buffer[512];
    long size = quiescence_read(base, number, "/stat", buffer, sizeof buffer);
    while (size > 0 && buffer[size - 1] != ')') {
        size--;
    }
    return size > 0 ? buffer[size + 1] : '\0'; /* which is 0 behind the end */
}

/* A vfork's child runs in our memory, as the thread that waits for it: both sleep then. (Of other
 * children of the thread nobody asks how they came.) */
static int quiescence_children_sleep(uint32_t tid) {
    char buffer[512];
    long size = quiescence_read("/proc/self/task/", tid, "/children", buffer, sizeof buffer);
    const char *at = buffer;
    int all = size >= 0 && size < (long)sizeof buffer - 1;
    while (all && *at != '\0') {
        char state = quiescence_state("/proc/", (uint32_t)text_read_number(&at));
        all = state == 'S' || state == 'Z' || state == 'X';
        at += *at == ' ';
    }
    return all;
}

/* Asleep; or in a vfork, in a system call, that is: one that waits for its memory has none there.
 */
static int quiescence_sleeps(uint32_t tid) {
    char buffer[256];
    char state = quiescence_state("/proc/self/task/", tid);
    return state == 'S' ||
           (state == 'D' &&
            quiescence_read("/proc/self/task/", tid, "/syscall", buffer, sizeof buffer) > 0 &&
            buffer[0] >= '0' && buffer[0] <= '9' && quiescence_children_sleep(tid));
}

static int quiescence_are_outside(struct quiescence *quiet) {
    int all = 1;
    for (uint32_t i = 0; i < quiet->count; i++) {
        struct waiting *waiting = &quiet->thread[i];
        uint64_t now_ns;
        if (waiting->tid != 0 &&
            (sys_thread_time_ns(waiting->tid, &now_ns) != 0 || now_ns - waiting->ran_ns > RUN_NS ||
             quiescence_sleeps(waiting->tid))) {
            waiting->tid = 0;
        }
        all &= waiting->tid == 0;
    }
    return all;
}

/* --- looking ---------------------------------------------------------------------------------- */

void quiescence_begin(struct quiescence *quiet) {
    struct waiting *memory = quiet->thread;
    if (memory == NULL) {
        memory = sys_map(MOST_THREADS * sizeof *memory);
    }
    *quiet = (struct quiescence){.thread = memory, .began_ns = sys_clock_ns(CLOCK_MONOTONIC)};
    if (memory != NULL) {
        quiescence_find_threads(quiet);
    }
}

void quiescence_end(struct quiescence *quiet) {
    if (quiet->thread != NULL) {
        sys_unmap(quiet->thread, MOST_THREADS * sizeof *quiet->thread);
    }
    *quiet = (struct quiescence){0};
}

uint64_t quiescence_passed_ns(const struct quiescence *quiet) {
    return sys_clock_ns(CLOCK_MONOTONIC) - quiet->began_ns;
}

int quiescence_is(struct quiescence *quiet) {
    uint64_t passed = quiescence_passed_ns(quiet);
    if (!quiet->is_whole) {
        return 0;
    }
    quiet->are_outside = quiet->are_outside || quiescence_are_outside(quiet);
    return quiet->are_outside && (quiet->count == 0 || passed >= LEAST_NS) &&
           (passed >= GATES_NS || !thread_is_any_inside());
}

int quiescence_wait(uint64_t limit_ns) {
    struct quiescence quiet = {0};
    int is_quiet;
    quiescence_begin(&quiet);
    do {
        sys_sleep_ns(LOOK_NS);
        is_quiet = quiescence_is(&quiet);
    } while (!is_quiet && quiet.is_whole && quiescence_passed_ns(&quiet) <= limit_ns);
    quiescence_end(&quiet);
    return is_quiet;
}
