/* SPDX-License-Identifier: MIT */
/*
 * micro.h: what the micro benchmarks share: a timed loop that reports nanoseconds an operation, and
 * a profile region in a temporary file. Each program measures one structure of the runtime alone,
 * so that an alternative can be compared before anything is built on it.
 */
#ifndef MEMTRACE_MICRO_H
#define MEMTRACE_MICRO_H

#include "benchmarks/overhead/bench.h"
#include "runtime/base/space.h"

enum { MICRO_ROUNDS = 15 };

/* Runs body(argument) MICRO_ROUNDS times after one to warm up, and prints the median time of one of
 * its `operations`. */
void micro_measure(const char *name, long operations, void (*body)(void *), void *argument);

/* Runs it once, cold: for what cannot be repeated. */
void micro_measure_once(const char *name, long operations, void (*body)(void *), void *argument);

/* Opens a region like the runtime's, on tmpfs where there is one; exits when it cannot. */
void micro_open_space(struct space *space);

/* A cheap random sequence (xorshift64), never 0. */
static inline uint64_t micro_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
