/* SPDX-License-Identifier: MIT */
/*
 * liveheap.h: which live block of a running program contains this address?
 *
 * Called by cli/trace.c. Reads the program's shadow heap (format.h, last section) through the
 * kernel, without stopping it: what it finds was true at some moment of the call. Any thread.
 */
#ifndef ANALYZE_READ_LIVEHEAP_H
#define ANALYZE_READ_LIVEHEAP_H

#include "analyze/base/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <sys/types.h>

struct liveheap_block {
    uint64_t start;
    uint64_t size;
    uint64_t age_ns;  /* how long it has lived, to about 4 ms */
    uint32_t context; /* 0: taken without a backtrace */
    uint32_t thread;  /* its record in the profile */
    bool pool;        /* of a custom pool, not of malloc */
};

/*
 * 1: found, the innermost block (a pool's before the malloc block it lies in); 0: no live block;
 * -1: the program's memory cannot be read, with the reason in error. header is the program's own,
 * now_ns the time of CLOCK_MONOTONIC.
 */
int liveheap_find(pid_t pid, const struct memtrace_header *header, uint64_t address,
                  uint64_t now_ns, struct liveheap_block *block, struct error *error);

#endif
