/* SPDX-License-Identifier: MIT */
/* clock.h: the clock that programs and their collectors share. Used by collect and whoever
 * stands above it. */
#ifndef COLLECT_CLOCK_H
#define COLLECT_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* In nanoseconds, as all times here. */
#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* From the kernel, as programs' runtimes have it: clock_gettime may be a preloaded library's that
 * tells of another time (`faketime ... memtrace run`). */
static inline uint64_t clock_kernel_ns(clockid_t clock) {
    long now[2] = {0, 0}; /* seconds, nanoseconds */
    syscall(SYS_clock_gettime, clock, now);
    return (uint64_t)now[0] * 1000000000u + (uint64_t)now[1];
}

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t clock_now_ns(void) {
    return clock_kernel_ns(CLOCK_MONOTONIC);
}

/* Processor time of this thread: who waits for a processor has not used it. */
static inline double clock_processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
