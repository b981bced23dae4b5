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

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYNCING_FOLDERS = 2 };

/* One recording's bytes, under way. The first four are the caller's. */
struct sync_job {
    void *owner;     /* NULL: whom it was for is gone */
    uint64_t target; /* what was written below it is on the disk when it is done */
    uint64_t safe;   /* what is below it is there also if this fails */
    int reason;      /* once it is done: 0, or errno */

    int fd;                       /* of its own */
    uint64_t device, inode;       /* which file that is */
    int folders[SYNCING_FOLDERS]; /* whose names are to be on the disk, too; -1: none */
    struct sync_job *next;        /* of those that are asked for, or done */
    struct sync_job *next_of_all;
};

struct syncing;

/* NULL: error. */
struct syncing *syncing_new(struct error *error);
/* Waits for what is under way, but not for a disk that stands still: how many files may lack what
 * was not acknowledged. NULL is allowed. */
size_t syncing_free(struct syncing *syncing);
/* Can be read when a job is done. */
int syncing_fd(const struct syncing *syncing);

/* Begins; the descriptors are duplicated. NULL: errno. */
struct sync_job *syncing_begin(struct syncing *syncing, void *owner, uint64_t target, uint64_t safe,
                               int fd, const int folders[SYNCING_FOLDERS]);
/* Whether this file is under way. Who asks for it again would not hear of what fails now: the
 * kernel tells of it once, and takes what it could not write for written from then on. */
bool syncing_has(struct syncing *syncing, int fd);
/* The next that is done; NULL: none now. */
struct sync_job *syncing_take(struct syncing *syncing);
/* It has failed: takes away from its file what may not be on the disk, or a later sync would say
 * that it is. Bytes that the file had more. */
uint64_t syncing_cut(const struct sync_job *job);
/* Whether the descriptor is of its file. */
bool syncing_is_of(const struct sync_job *job, int fd);
void syncing_free_job(struct sync_job *job);

#endif
