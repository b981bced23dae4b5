/* SPDX-License-Identifier: MIT */
/*
 * programask.h: one wish of a user, carried out on a running program through its region, without
 * waiting for it: what is counted, or a mark in its recording.
 *
 * Called by cli/control for programs of this machine, and by stream/controlled for a user on
 * another one. Belongs to one thread.
 */
#ifndef COLLECT_PROGRAMASK_H
#define COLLECT_PROGRAMASK_H

#include "analyze/base/error.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"

#include <stdbool.h>

/* The numbers are part of the protocol (docs/stream.md). */
enum programask_what {
    PROGRAMASK_OFF = 1,
    PROGRAMASK_ON = 2,
    PROGRAMASK_EXACT = 3,
    PROGRAMASK_SAMPLE = 4, /* mean */
    PROGRAMASK_MARK = 5,   /* text */
    PROGRAMASK_SAY = 6,    /* nothing: what is counted now? */
    PROGRAMASK_WISHES,
};

enum { PROGRAMASK_TEXT = MEMTRACE_ASKED_MARK_BYTES };

struct programask_wish {
    uint32_t what; /* enum programask_what */
    uint64_t mean; /* bytes */
    char text[PROGRAMASK_TEXT];
};

struct programask_answer {
    bool is_done;
    char text[PROGRAMASK_TEXT]; /* what is now, or why not */
};

struct programask {
    struct memtrace_header *header; /* mapped; NULL: nothing is under way */
    struct region region;
    struct programask_wish wish;
    struct memtrace_asked_marks *marks; /* in the region; NULL: none was asked for yet */
    uint64_t mark_number;
    uint64_t control;  /* what it was asked for */
    uint64_t until_ns; /* so long it is waited for */
};

/* The program of this machine that a recording is of, while it runs. 0, or -1: error. */
int programask_find(const char *recording, struct region *region, struct error *error);

/* The region is that of a program that ran a moment ago. 0, or -1: error. */
int programask_begin(struct programask *ask, const struct region *region,
                     const struct programask_wish *wish, struct error *error);
/* Now and then. True: that is the answer, and nothing is under way any more. It comes within a
 * second: of a program that goes on later, that it was asked. */
bool programask_look(struct programask *ask, struct programask_answer *answer);
/* Gives up waiting. */
void programask_end(struct programask *ask);

#endif
