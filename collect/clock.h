/* SPDX-License-Identifier: MIT */
/* clock.h: the clock that programs and their collectors share. Used by collect and cli. */
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

#endif
