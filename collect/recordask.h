/* SPDX-License-Identifier: MIT */
/*
 * recordask.h: asks for a recording of a program that runs and is only profiled, from now on, or
 * for its end. Who collects the program writes it; where nobody does, a companion (cli/companion)
 * is started, which ends with the recording and not with who asked.
 *
 * Called by cli/control and top. recordask_begin() and recordask_end() come back at once; what came
 * of it says recordask_look(), now and then.
 */
#ifndef COLLECT_RECORDASK_H
#define COLLECT_RECORDASK_H

#include "analyze/base/error.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"

#include <stdbool.h>

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

/* Of two that ask a program for something at once one is first: a descriptor, to be closed. -1:
 * error. The lock goes away with who holds it. */
int recordask_lock(const struct region *region, struct error *error);

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

#endif
