/* SPDX-License-Identifier: MIT */
/*
 * recordslices.h: the slices of a recording (analyze/window/index.h), which its file carries so
 * that the first report of it need not go through its events. They are made of what is in the files
 * already, by a thread that rests where the processors have others to run; what it has not come to
 * is done at the close.
 *
 * Called by collect/record. Nothing depends on it: a recording without slices only takes longer to
 * read. It is given up where memory would grow (RECORDSLICES_CONTEXTS and RECORDSLICES_BLOCKS: some
 * 300 MiB), where a file of the recording was taken away, and left out of short recordings
 * (RECORDSLICES_EVENTS) and where it would make the files more than 2 % (or 16 KiB) larger.
 */
#ifndef COLLECT_RECORDSLICES_H
#define COLLECT_RECORDSLICES_H

#include "collect/recordparts.h"

enum {
    RECORDSLICES_EVENTS = 1 << 17,   /* fewer are gone through in a moment */
    RECORDSLICES_CONTEXTS = 1 << 20, /* highest number of a context */
    RECORDSLICES_BLOCKS = 1 << 20,   /* alive at once */
    RECORDSLICES_SHARE = 50,         /* at most a fiftieth of the files' size, ... */
    RECORDSLICES_BYTES = 16 << 10,   /* ... or so much, for loops of which millions take nothing */
};

struct recordslices;

/* Of these files, which must outlive it. NULL: not wanted, or no memory. All calls: NULL is
 * allowed. */
struct recordslices *recordslices_new(const struct recordparts *parts);
/* Goes on beside whoever writes the files. Where there is no thread, all is done at the close. */
void recordslices_start(struct recordslices *slices);
/* Another part was begun. */
void recordslices_note_part(struct recordslices *slices);
/* All is written but for the index of the last part: goes through what is left, and appends the
 * block. */
void recordslices_write(struct recordslices *slices, struct recordfile *file);
void recordslices_free(struct recordslices *slices);

#endif
