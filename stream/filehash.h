/* SPDX-License-Identifier: MIT */
/*
 * filehash.h: XXH3 (64 bits, seed 0) of a file's first bytes, a slice at a time, so that who
 * computes it can do something else in between.
 *
 * Called by stream/sender and stream/arrival, each with its own.
 */
#ifndef STREAM_FILEHASH_H
#define STREAM_FILEHASH_H

#include <stdint.h>

struct filehash {
    int fd;        /* the caller's */
    uint64_t done; /* so many bytes are in it */
    uint64_t size; /* so many are to be */
    void *state;   /* NULL: not started */
    uint64_t hash; /* filehash_step() returned 1 */
};

/* 0, or -1: out of memory. */
int filehash_start(struct filehash *hash, int fd, uint64_t size);
/* Takes the next slice. 1: that was the last one; 0; -1: the file is shorter or cannot be read
 * (errno; 0: shorter). */
int filehash_step(struct filehash *hash);
void filehash_end(struct filehash *hash); /* of one from {0}, too */

#endif
