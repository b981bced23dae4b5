/* SPDX-License-Identifier: MIT */
/*
 * recordparts.h: the files of one recording: the first, NAME.mtr, and where it is rotated
 * NAME.1.mtr and so on. Each can be read alone: it begins with the program and ends with its
 * tables.
 *
 * Called by collect/record. Belongs to one thread.
 */
#ifndef COLLECT_RECORDPARTS_H
#define COLLECT_RECORDPARTS_H

#include "collect/claim.h"
#include "collect/recordtables.h"

struct recordparts {
    const struct claim *claim;
    struct memtrace_recording *recording; /* in the region */
    char *path;                           /* of the first, with room for as much as there */
    struct recordtables *tables;
    struct memtrace_recording_header header; /* of this part */
    struct recordfile file;
    uint64_t start_bytes;   /* what this part began with */
    uint64_t earlier_bytes; /* of parts before this one */
    bool is_left;           /* a recording that began midway is over, and the program goes on */
    struct error *error;    /* where each of these functions says why it failed */
};

/* Called with the path of each file that a recording of this process begins or goes on with, by the
 * thread that records. NULL: nobody wants to know. To be set before the first recording. */
extern void (*recordparts_opened)(const char *path);

/* Goes on with the last part that a writer left who died, or begins the first; in $TMPDIR or /tmp
 * where the wanted place takes no file (then the error says so, and the region says where it is).
 * What is in a file that was there: parts->file.index. 0 or -1. All pointers must outlive it. */
int recordparts_open(struct recordparts *parts, const struct claim *claim,
                     struct recordtables *tables, struct error *error);

/* Where a part of this recording lies. */
void recordparts_path(const struct recordparts *parts, uint32_t part, char *to, size_t capacity);

/* Writes what the tables have new: before events, the contexts that these are the first to use; now
 * and then, all of them. 0 or -1. */
int recordparts_write_nodes(struct recordparts *parts);
int recordparts_write_tables(struct recordparts *parts);

/* Keeps room on the disk for what is written when nothing more can be; it grows with the tables. */
void recordparts_reserve(struct recordparts *parts);

/* Begins the next part if this one is large enough. Only when all that it holds has been noted in
 * the buffers, since who goes on with a recording looks at its last part alone. 0 or -1. */
int recordparts_rotate(struct recordparts *parts);

/* Goes on with a part that was closed, to be closed again by the caller. 1; 0: it is not there any
 * more; -1: failed. */
int recordparts_reopen(const struct recordparts *parts, uint32_t part, struct recordfile *file);

/* Ends the last part. 0 or -1. */
int recordparts_close(struct recordparts *parts);

#endif
