/* SPDX-License-Identifier: MIT */
/*
 * programask.h: what a user wants of a running program, through its region: what is counted (one
 * word in the header, sampled.h, which the program carries out at one of its next events; no signal
 * is sent), a recording from now on, or its end, or a mark in it. Nobody waits here.
 *
 * Called by cli/control and top for programs of this machine, and by stream/controlled for a user
 * on another one. Any thread; a struct programask belongs to one.
 */
#ifndef COLLECT_PROGRAMASK_H
#define COLLECT_PROGRAMASK_H

#include "analyze/base/error.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"
#include "memtrace/format.h"

#include <stdbool.h>

/* ---- What is counted ---- */

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

/* ---- A recording ---- */

enum recordask_state {
    RECORDASK_NONE,    /* it is not recorded */
    RECORDASK_START,   /* it is since its start */
    RECORDASK_OPENING, /* nobody has opened the file yet */
    RECORDASK_ASKED,   /* the program begins at one of its next events */
    RECORDASK_ON,
    RECORDASK_STOPPED, /* the disk is full, say: to be ended */
    RECORDASK_ENDING,  /* the file is not whole yet */
    RECORDASK_CLOSED,  /* it is, and the program lets go of it at one of its next events */
    RECORDASK_REFUSED, /* it cannot be: recording.path says why */
};

enum recordask_state recordask_look(const struct memtrace_header *header);
/* The recording in the header. */
const struct memtrace_recording *recordask_recording(const struct memtrace_header *header);

/* Where it goes, or why it was refused, ended in any case: whose program it is may be writing to
 * the header. */
enum { RECORDASK_PATH = sizeof(((struct memtrace_recording *)0)->path) };
void recordask_path(const struct memtrace_header *header, char path[RECORDASK_PATH]);

/* header: of modeswitch_map(). output: a pattern as of `memtrace record --output`, NULL: a new file
 * in this folder. 0, and path is where it goes, whatever the header says from then on; or -1: error
 * says why it cannot be. */
int recordask_begin(struct memtrace_header *header, const struct region *region, const char *output,
                    char path[RECORDASK_PATH], struct error *error);
/* While it is RECORDASK_OPENING: sees to it that somebody collects the program. */
void recordask_help(const struct region *region);
/* Nobody did: it is not to be. */
void recordask_give_up(struct memtrace_header *header);

int recordask_end(struct memtrace_header *header, const struct region *region, struct error *error);

/* %p, %e, %t, %n and %% as the program itself does with MEMTRACE_RECORD_OUTPUT. */
void recordask_expand(const char *pattern, pid_t pid, const char *program, unsigned number,
                      time_t now, char *to, size_t capacity);

/* ---- One wish, carried out ---- */

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
