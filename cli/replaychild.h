/* SPDX-License-Identifier: MIT */
/*
 * replaychild.h: what `memtrace replay` and the process that does its allocations say to each
 * other.
 *
 * The process is this program again, with the other allocator loaded first: `memtrace replay-child
 * FILE FD LIBRARY TOUCH THREADS`, not for people.
 */
#ifndef CLI_REPLAYCHILD_H
#define CLI_REPLAYCHILD_H

#include <stdint.h>

/* Written to FD as a whole, once. */
struct replaychild_result {
    uint64_t time_ns;
    uint64_t peak_bytes; /* resident, beyond what was before the first allocation */
    uint64_t end_bytes;  /* likewise, behind the last event */
    char message[512];   /* not empty: why there is nothing to tell */
};

#endif
