/* SPDX-License-Identifier: MIT */
/*
 * modeswitch.h: asks a running program to count all, a sample or nothing: one word in the header of
 * its region (sampled.h), which it carries out at one of its next events. No signal is sent.
 *
 * Called by cli/control and top. Any thread.
 */
#ifndef COLLECT_MODESWITCH_H
#define COLLECT_MODESWITCH_H

#include "analyze/base/error.h"
#include "memtrace/format.h"

#include <stdbool.h>

enum { MODESWITCH_MEAN = 512 << 10 }; /* of a sample, where nobody says otherwise */

struct modeswitch {
    uint32_t mode; /* enum memtrace_mode */
    uint64_t mean; /* of MEMTRACE_MODE_SAMPLED */
};

/* A word in the region of a running program that several processes read and write: what was written
 * before it is seen by who has seen it. */
static inline uint64_t modeswitch_load(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* The header of a region, mapped to be written. NULL: error is set. */
struct memtrace_header *modeswitch_map(const char *path, struct error *error);
/* The same of what may be none: looks first. */
struct memtrace_header *modeswitch_open(const char *path, struct error *error);
void modeswitch_unmap(struct memtrace_header *header);

/* Asks; what control_done becomes once it is carried out. */
uint64_t modeswitch_ask(struct memtrace_header *header, struct modeswitch wish);
/* Whether the program counts so now. It says first that it does it, and then that it has. */
bool modeswitch_holds(const struct memtrace_header *header, struct modeswitch wish);
/* What is counted, in words: "exact, every allocation is recorded". */
const char *modeswitch_say(const struct memtrace_header *header, char *text, size_t capacity);
/* The mean distance of what is sampled: of recordings it is they that are. 0: nothing is. */
uint64_t modeswitch_mean(const struct memtrace_header *header);

#endif
