/* SPDX-License-Identifier: MIT */
/*
 * finish.h: makes a profile out of the region of a program that is gone, and its summary.
 *
 * Called by collect/collector, collect/recover and cli/run.
 */
#ifndef COLLECT_FINISH_H
#define COLLECT_FINISH_H

#include "analyze/model/model.h"
#include "collect/claim.h"
#include "collect/copy.h"
#include "collect/leftout.h"
#include "collect/record.h"

#include <stdio.h>

enum finish_place {
    FINISH_MOVED = 0,     /* the profile is at `path`, as the program wanted */
    FINISH_ELSEWHERE = 1, /* it is at `path`, in $TMPDIR or /tmp; `trouble` says why */
    FINISH_KEPT = 2,      /* nothing could be written: the region stays at `path` */
};

struct finished {
    bool is_recording; /* `path` is a recording's */
    enum finish_place place;
    char path[4200];
    struct error trouble; /* one line, without where the profile is now */
};

/* Writes the profile and unlinks the region. COPY_KEEP for a program that ended some time ago: what
 * is at its output path by now may be newer. `claim` stays claimed. */
void finish_region(const struct claim *claim, enum copy_mode mode, struct finished *finished);

/* Before both: notes in the region's header what only the files of the program and its libraries
 * tell of their malloc, since they may be gone when a report is made. `region` is the claimed one;
 * NULL: it cannot be read. */
void finish_note_malloc(const struct claim *claim, const struct profile *region);

/* Completes the recording of a region whose program is gone. `record` is what the caller has begun,
 * NULL: nothing. false: there is no recording to be had. */
bool finish_recording(const struct claim *claim, struct record *record,
                      struct record_result *result);

/* Whether a profile is to be written, too, where there is a recording. */
bool finish_wants_profile(const struct claim *claim);

/* `left_out` of what is leaked. The summary's lines, each with "memtrace: " before it and a newline
 * behind. profile: its path, or NULL; recording: NULL where there is none. */
void finish_print_summary(FILE *out, const struct model *model, const struct leftout *left_out,
                          const char *profile, const struct record_result *recording);

/* The summary's last line: the command that reads this file or folder, as a shell takes it. */
void finish_print_hint(FILE *out, const char *path);

#endif
