/* SPDX-License-Identifier: MIT */
/*
 * syncing.h: puts received bytes on the disk in threads of its own, so that a slow disk delays the
 * acknowledgement of those bytes, and nothing else.
 *
 * Called by stream/incoming and stream/gatherer, from the gatherer's thread alone. Its threads see
 * nothing but descriptors.
 */
#ifndef STREAM_SYNCING_H
#define STREAM_SYNCING_H

#include "analyze/read/error.h"

#include <stdint.h>

enum { SYNCING_FOLDERS = 2 };

/* One recording's bytes, under way. The first three are the caller's. */
struct sync_job {
    void *owner;     /* NULL: whom it was for is gone */
    uint64_t target; /* what was written below it is on the disk when it is done */
    int reason;      /* once it is done: 0, or errno */

    int fd;                       /* of its own */
    int folders[SYNCING_FOLDERS]; /* whose names are to be on the disk, too; -1: none */
    struct sync_job *next;
};

struct syncing;

/* NULL: error. */
struct syncing *syncing_new(struct error *error);
/* Waits for what is under way. NULL is allowed. */
void syncing_free(struct syncing *syncing);
/* Can be read when a job is done. */
int syncing_fd(const struct syncing *syncing);

/* Begins; the descriptors are duplicated. NULL: errno. */
struct sync_job *syncing_begin(struct syncing *syncing, void *owner, uint64_t target, int fd,
                               const int folders[SYNCING_FOLDERS]);
/* The next that is done, for the caller to free; NULL: none now. */
struct sync_job *syncing_take(struct syncing *syncing);

#endif
