/* SPDX-License-Identifier: MIT */
/*
 * bench.h: what every subject of the overhead benchmarks shares: options, clocks, medians, and the
 * one output format that benchmarks/run reads: lines "RESULT name value".
 *
 * A subject times itself, so the start of a tool and what it prints never count. Nothing here
 * allocates: a helper's own malloc would be measured too.
 */
#ifndef MEMTRACE_BENCH_H
#define MEMTRACE_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_MAX_BATCHES = 1000 };

/* Makes the compiler believe that the block is used, so that the pair is not removed. */
#define BENCH_KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* Stands behind a call: it stays a call (no tail call), and two such calls stay two call sites. */
#define BENCH_CALL_SITE(number) __asm__ volatile("" : : "i"(number) : "memory")

/* Not inlined, not cloned: the frames counted in the source are the frames at run time. */
#define BENCH_FRAME __attribute__((noinline, noclone))

static inline uint64_t bench_clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Processor time of the calling thread: a machine that is busy elsewhere disturbs it little. */
static inline uint64_t bench_now_ns(void) {
    return bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t bench_wall_ns(void) {
    return bench_clock_ns(CLOCK_MONOTONIC);
}

static inline void bench_result(const char *name, double value) {
    printf("RESULT %s %.6f\n", name, value);
}

/* The number that follows `name` on the command line, else `fallback`. */
static inline long bench_option(int argc, char **argv, const char *name, long fallback) {
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return strtol(argv[i + 1], NULL, 10);
    }
    return fallback;
}

static int bench_compare(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts in place by insertion: qsort() may allocate. */
static inline double bench_median(double *values, int count) {
    for (int i = 1; i < count; i++) {
        double value = values[i];
        int place = i;
        for (; place > 0 && bench_compare(&values[place - 1], &value) > 0; place--)
            values[place] = values[place - 1];
        values[place] = value;
    }
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* A field of /proc/self/status in KiB ("VmHWM:", "VmRSS:"), or -1. Raw reads: stdio allocates. */
#ifdef __cplusplus
extern "C" long bench_status_kib(const char *field);
#else
long bench_status_kib(const char *field);
#endif

#endif
