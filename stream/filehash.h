/* SPDX-License-Identifier: MIT */
/*
 * filehash.h: hashes of files: of the first bytes, a slice at a time, so that who computes it can
 * do something else in between; and SHA-256 of a piece.
 *
 * Called by stream/sender, stream/punch and stream/arrival, each with its own; the digest by
 * stream/reuse and stream/knownpieces. Any thread.
 *
 *     hash of no bytes: 0. Of each piece of FILEHASH_PIECE bytes, and of what is left of one at the
 *     end: XXH3, 64 bits, with the hash so far as its seed
 *
 * So at each whole piece `done` and `hash` are all that is needed to go on, also for another
 * process after this one was killed, and without the bytes before.
 */
#ifndef STREAM_FILEHASH_H
#define STREAM_FILEHASH_H

#include "stream/wire.h"

enum { FILEHASH_PIECE = 1 << 16 };

struct filehash {
    int fd;          /* the caller's */
    uint64_t done;   /* so many bytes are in it */
    uint64_t size;   /* so many are to be */
    bool is_running; /* until filehash_end() */
    uint64_t hash;   /* of `done` bytes */
};

/* Goes on from `done` and `hash`, whole pieces or 0, up to a size. */
void filehash_start(struct filehash *hash, int fd, uint64_t size);
/* Takes the next slice. 1: that was the last one; 0; -1: the file is shorter or cannot be read
 * (errno; 0: shorter). */
int filehash_step(struct filehash *hash);
void filehash_end(struct filehash *hash);

/* SHA-256, by OpenSSL. 0, or -1: the file cannot be read there, or is shorter. */
int filehash_digest(int fd, uint64_t offset, uint32_t size, uint8_t digest[WIRE_DIGEST]);

#endif
