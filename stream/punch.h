/* SPDX-License-Identifier: MIT */
/*
 * punch.h: frees what of a growing recording is on another machine's disk, so that the file takes
 * no more than what is still to be sent. What there was is kept in pages behind the first block
 * (struct memtrace_sent): so the recorder can go on with the file, and another sender too.
 *
 * Called by stream/sender. Belongs to one thread.
 */
#ifndef STREAM_PUNCH_H
#define STREAM_PUNCH_H

#include "analyze/base/error.h"
#include "analyze/read/sent.h"
#include "stream/filehash.h"

struct punch {
    int fd;               /* the caller's, open for reading */
    char to[96];          /* whom it was sent to */
    struct sent sent;     /* the last page, and blocks that are in none yet */
    struct filehash hash; /* of what is acknowledged */
    uint64_t noted;       /* blocks below it are in `sent` */
    uint64_t freed;       /* bytes below it, behind the pages, are free */
    uint64_t at_ns;       /* the last time */
};

/* What was freed before: punch->sent.last.end, where the file goes on. 0, or -1: errno. */
int punch_open(struct punch *punch, int fd);
/* Whom it is sent to now. */
void punch_name(struct punch *punch, const char *to);
void punch_close(struct punch *punch);

/* A block of the file that will not change, the next one. 0, or -1: out of memory. */
int punch_note(struct punch *punch, uint64_t offset, const struct memtrace_block_header *block);

/* Bytes below `acked` are there: frees them if it is time. 0; -1: it cannot be done (error). */
int punch_free(struct punch *punch, uint64_t acked, uint64_t now_ns, struct error *error);

#endif
