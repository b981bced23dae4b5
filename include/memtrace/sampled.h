/* SPDX-License-Identifier: MIT */
/*
 * sampled.h: the contract, where only a sample of the allocations is counted: how a program is told
 * to, what its profile holds then, where it keeps the blocks that it picked.
 */
#ifndef MEMTRACE_SAMPLED_H
#define MEMTRACE_SAMPLED_H

#include "memtrace/format.h"

/* What becomes of an allocation: header.mode. */
enum memtrace_mode {
    MEMTRACE_MODE_EXACT = 0,   /* it is counted */
    MEMTRACE_MODE_SAMPLED = 1, /* one in header.sample_bytes is counted, for the others */
    MEMTRACE_MODE_OFF = 2,     /* it stays out; frees of what was counted are counted */
    MEMTRACE_MODE_ON = 3,      /* in header.control alone: what it was before off */
    MEMTRACE_MODE_LOOK = 4,    /* the same: leaves it, but recording.state (events.h) has changed */
};

/* header.control: what is asked from outside. A program carries it out at one of its next events
 * and copies it to control_done. 0: nothing was ever asked. */
enum {
    MEMTRACE_CONTROL_MEAN_BITS = 40,   /* from bit 0: the mean distance for MEMTRACE_MODE_SAMPLED */
    MEMTRACE_CONTROL_MODE_SHIFT = 40,  /* 4 bits: enum memtrace_mode */
    MEMTRACE_CONTROL_SERIAL_SHIFT = 48 /* grows by one, never 0, so that the word changes */
};

/*
 * What chance adds to a context's counters. In mode sampled a point lies on the line of all bytes
 * that a thread allocates, at distances that are exponential with the mean header.sample_bytes; a
 * block of s bytes takes s + 1 of the line, and is counted if a point lies in it: with p = 1 -
 * exp(-(s + 1) / mean), for s / p bytes in 1 / p blocks (rounded up or down by chance). So each sum
 * of the file has the true sum as its mean. Such a block adds s^2 (1 - p) / p^2 to the variance of
 * a sum of bytes, (1 - p) / p^2 to that of a number of blocks; one that was counted exactly adds 0.
 * Standard errors are the roots of sums.
 */
struct memtrace_estimate {
    double total_variance; /* of alloc_bytes, all columns together */
    double freed_variance; /* of what of it was freed: live is total - freed */
    double count_variance; /* of alloc_count */
    uint64_t samples;      /* blocks that stand for others */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_estimate) == 32, "estimate size");

/*
 * The sampled blocks that are live, in the program's private memory as the shadow heap, at
 * header.sampled_heap (0: none yet). Level n has 8 * groups keys and as many blocks behind them. A
 * block at address a lies in one of the 8 places of group (a * MEMTRACE_SAMPLED_SPREAD >> 32) mod
 * groups of some level, where the key is a; 0 and 1 are no addresses.
 */
enum { MEMTRACE_SAMPLED_LEVELS = 12, MEMTRACE_SAMPLED_GROUP = 8 };
#define MEMTRACE_SAMPLED_SPREAD UINT64_C(0x9e3779b97f4a7c15)

struct memtrace_sampled_block {
    uint64_t size;  /* as asked for */
    uint64_t bytes; /* what it stands for */
    uint64_t count;
    uint32_t context;
    uint32_t thread;
    uint32_t birth_tick;
    uint32_t reserved;
};
struct memtrace_sampled_level {
    uint64_t groups;
    uint64_t keys;   /* address of uint64_t[8 * groups] */
    uint64_t blocks; /* address of struct memtrace_sampled_block[8 * groups] */
};
struct memtrace_sampled_heap {
    uint64_t level[MEMTRACE_SAMPLED_LEVELS]; /* addresses of the levels in use; 0: not in use */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_sampled_block) == 40, "sampled block size");

#endif
