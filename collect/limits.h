/* SPDX-License-Identifier: MIT */
/*
 * limits.h: notices that a program comes near the end of its memory, before the kernel's OOM killer
 * or a failing malloc does. docs/limits.md says what is looked at.
 *
 * Called by collect/collector at every tick. Each source tells once when it is crossed, and again
 * only after it fell well below its limit.
 */
#ifndef COLLECT_LIMITS_H
#define COLLECT_LIMITS_H

#include "memtrace/format.h"

#include <stdbool.h>
#include <sys/types.h>

enum limits_source {
    LIMITS_PROCESS,  /* what it has in memory and swap */
    LIMITS_ADDRESS,  /* its address space (ulimit -v) */
    LIMITS_CGROUP,   /* its control group and those around it */
    LIMITS_MACHINE,  /* what is available */
    LIMITS_PRESSURE, /* how long everybody waits for memory */
    LIMITS_SOURCES
};

struct limits {
    struct memtrace_limit limit;
    pid_t pid;
    const char *root; /* before /proc and /sys: "", or a test's folder */
    bool crossed[LIMITS_SOURCES];
    char text[600];
};

void limits_start(struct limits *limits, const struct memtrace_limit *limit, pid_t pid,
                  const char *root);

static inline bool limits_wanted(const struct limits *limits) {
    return limits->limit.bytes != 0 || limits->limit.percent != 0;
}

/* What was crossed since the last call, as a sentence without an end, valid until the next call;
 * NULL: nothing. What cannot be read is not looked at. */
const char *limits_check(struct limits *limits);

/* What the control group uses and may use that is nearest to its limit, of the process's own and
 * those around it. false: none has a limit, or that cannot be read. */
bool limits_group(pid_t pid, const char *root, uint64_t *used, uint64_t *most);

#endif
