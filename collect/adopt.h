/* SPDX-License-Identifier: MIT */
/*
 * adopt.h: completes the recordings of killed programs and moves their profiles to their places.
 *
 * Called by cli: `memtrace list` for all of them, others for what they were asked about. Several
 * commands may do so at once: each region is taken by one of them. A region whose process exists,
 * or whose collector does, is left alone.
 */
#ifndef COLLECT_ADOPT_H
#define COLLECT_ADOPT_H

#include "collect/finish.h"

struct adopted {
    pid_t pid;
    const char *program; /* absolute path, "" if unknown */
    struct finished finished;
};

typedef void (*adopt_note)(void *context, const struct adopted *adopted);

/* Adopts all regions of killed programs of this user, and finds collectors for those that run
 * without (collect/orphan.h), calling note (may be NULL) for each. 0 or -1 (out of memory). */
int adopt_killed(adopt_note note, void *context, struct error *error);

/* One region. 1: adopted, 0: left alone. */
int adopt_region(const char *path, adopt_note note, void *context);

/* Whether a command is to look at this region: who names a folder by $MEMTRACE_REGION_DIR means
 * that folder alone, as the runtime does. */
bool adopt_is_meant(const struct region *region);

/* One line, without newline, that says what became of it. */
void adopt_line(const struct adopted *adopted, char *line, size_t capacity);

#endif
