/* SPDX-License-Identifier: MIT */
/* clock.h: the clock that programs and their collectors share. Used by collect and whoever
 * stands above it. */
#ifndef COLLECT_CLOCK_H
#define COLLECT_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time of this thread: who waits for a processor has not used it. */
static inline double clock_processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
