/* SPDX-License-Identifier: MIT */
/*
 * quiet.c: waiting until each thread has left the runtime. See quiet.h.
 *
 * The slow halves of events say so in the gate. The fast ones do not; but they never sleep, and are
 * over within microseconds of processor time. So a thread that sleeps, or that has run for so long
 * since, has left them. One that waits for a processor, or is stopped, may still stand in one.
 */
#define _GNU_SOURCE
#include "runtime/entry/quiet.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/threadpool.h"

#include <dirent.h>
#include <fcntl.h>

enum {
    MOST_THREADS = 1 << 15,
    RUN_NS = 2 * 1000 * 1000,
    LOOK_NS = 5 * 1000 * 1000,
    LEAST_NS = 4 * LOOK_NS,
    /* A gate that is closed longer was left by a longjmp, and will never be opened. */
    GATES_NS = 1500 * 1000 * 1000,
};

struct waiting {
    uint32_t tid; /* 0: it has been outside */
    uint64_t ran_ns;
};

struct crowd {
    struct waiting *thread;
    uint32_t count;
    int is_whole;
};

static uint32_t number_of(const char *name) {
    uint32_t number = 0;
    for (; *name >= '0' && *name <= '9'; name++) {
        number = number * 10 + (uint32_t)(*name - '0');
    }
    return number;
}

static void add(struct crowd *crowd, uint32_t tid) {
    struct waiting *waiting = &crowd->thread[crowd->count];
    if (tid == 0 || tid == sys_gettid()) {
        return;
    }
    if (crowd->count == MOST_THREADS) {
        crowd->is_whole = 0;
    } else if (sys_thread_time_ns(tid, &waiting->ran_ns) == 0) {
        waiting->tid = tid;
        crowd->count++;
    }
}

static void find_threads(struct crowd *crowd) {
    char buffer[4096] __attribute__((aligned(8)));
    long fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    long size = fd;
    while (fd >= 0 && (size = sys_list((int)fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(buffer + at);
            add(crowd, number_of(entry->d_name));
            at += entry->d_reclen;
        }
    }
    crowd->is_whole &= size == 0;
    if (fd >= 0) {
        sys_close((int)fd);
    }
}

/* By its state in /proc/self/task/TID/stat, behind the name in parentheses. */
static int sleeps(uint32_t tid) {
    char buffer[512];
    struct text path;
    long size = -1;
    long fd;
    text_init(&path, buffer, sizeof buffer);
    text_add(&path, "/proc/self/task/");
    text_add_number(&path, tid);
    text_add(&path, "/stat");
    fd = sys_open(buffer, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        size = sys_read((int)fd, buffer, sizeof buffer);
        sys_close((int)fd);
    }
    while (size > 0 && buffer[size - 1] != ')') {
        size--;
    }
    return size > 0 && size + 1 < (long)sizeof buffer && buffer[size + 1] == 'S';
}

static int is_outside(const struct waiting *waiting) {
    uint64_t now_ns;
    return sys_thread_time_ns(waiting->tid, &now_ns) != 0 || now_ns - waiting->ran_ns > RUN_NS ||
           sleeps(waiting->tid);
}

static int are_outside(struct crowd *crowd) {
    int all = 1;
    for (uint32_t i = 0; i < crowd->count; i++) {
        struct waiting *waiting = &crowd->thread[i];
        if (waiting->tid != 0 && is_outside(waiting)) {
            waiting->tid = 0;
        }
        all &= waiting->tid == 0;
    }
    return all;
}

static int wait_for(struct crowd *crowd, uint64_t limit_ns) {
    uint64_t began = sys_clock_ns(CLOCK_MONOTONIC);
    uint64_t passed = 0;
    int all = 0;
    while (passed < LEAST_NS || !all || (threadpool_is_any_inside() && passed < GATES_NS)) {
        if (passed > limit_ns) {
            return 0;
        }
        sys_sleep_ns(LOOK_NS);
        passed = sys_clock_ns(CLOCK_MONOTONIC) - began;
        all = all || are_outside(crowd);
    }
    return 1;
}

int quiet_wait(uint64_t limit_ns) {
    struct crowd crowd = {.thread = sys_map(MOST_THREADS * sizeof *crowd.thread), .is_whole = 1};
    int is_quiet = 0;
    if (crowd.thread != NULL) {
        find_threads(&crowd);
        is_quiet = crowd.is_whole && wait_for(&crowd, limit_ns);
        sys_unmap(crowd.thread, MOST_THREADS * sizeof *crowd.thread);
    }
    return is_quiet;
}
