/* SPDX-License-Identifier: MIT */
/*
 * recover.h: completes the recordings of killed programs and moves their profiles to their places.
 *
 * Called by cli: `memtrace list` for all of them, others for what they were asked about. Several
 * commands may do so at once: each region is taken by one of them. A region whose process exists,
 * or whose collector does, is left alone.
 */
#ifndef COLLECT_RECOVER_H
#define COLLECT_RECOVER_H

#include "collect/finish.h"

struct recovered {
    pid_t pid;
    const char *program; /* absolute path, "" if unknown */
    bool ended;          /* by itself, and could not put it in its place; else it was killed */
    struct finished finished;
};

typedef void (*recover_note)(void *context, const struct recovered *recovered);

/* Recovers all regions of killed programs of this user, and finds collectors for those that run
 * without (collect/orphan.h), calling note (may be NULL) for each. 0 or -1 (out of memory). */
int recover_killed(recover_note note, void *context, struct error *error);

/* One region. 1: recovered, 0: left alone. */
int recover_region(const char *path, recover_note note, void *context);

/* That of a running program which was detached from, and could not write its profile. */
int recover_left(const char *path, recover_note note, void *context);

/* Whether a command is to look at this region: who names a folder by $MEMTRACE_REGION_DIR means
 * that folder alone, as the runtime does. */
bool recover_is_meant(const struct region *region);

/* One line, without newline, that says what became of it. */
void recover_line(const struct recovered *recovered, char *line, size_t capacity);

#endif
