/* SPDX-License-Identifier: MIT */
/*
 * arrival.h: a recording that is being received: its file, how far it is, and whether it has become
 * what its sender has.
 *
 * Called by stream/incoming. Belongs to one thread; what puts its bytes on the disk is syncing.h.
 *
 *     synced <= next, and next <= size but while data comes in
 *
 * Nothing but the file itself is kept: its size tells where to go on, its first bytes whose it is.
 */
#ifndef STREAM_ARRIVAL_H
#define STREAM_ARRIVAL_H

#include "stream/filehash.h"
#include "stream/sourcename.h"

struct arrival {
    int fd;     /* -1: none */
    int folder; /* of it, until its name was put on the disk, too; -1 */
    uint8_t id[WIRE_ID];
    char name[SOURCE_NAME]; /* below the folder */
    uint64_t size;          /* of the file */
    uint64_t next;          /* the byte that is wanted next */
    uint64_t synced;        /* below it all is on the disk */
    struct filehash hash;   /* it is running while the whole is compared */
    uint64_t wanted_hash;
};
#define ARRIVAL_NONE ((struct arrival){.fd = -1, .folder = -1})

/* Finds the recording's file below the folder, or makes it. is_other(context, name, id): whether a
 * recording of another identity is being received under this name. 0 or -1. */
int arrival_open(struct arrival *arrival, int folder, const struct wire_hello *hello,
                 bool (*is_other)(void *context, const char *name, const uint8_t *id),
                 void *context, struct error *error);
void arrival_close(struct arrival *arrival);

/* Writes what comes next. 0; -1: errno; EBADMSG: these are not the bytes of this recording. */
int arrival_write(struct arrival *arrival, const void *bytes, size_t size);
/* What was written below this is on the disk. */
void arrival_synced(struct arrival *arrival, uint64_t below);
/* It is not, and the file was cut: it goes on here. */
void arrival_cut(struct arrival *arrival, uint64_t size);

/* All was sent, and is compared once it is on the disk. 0; -1: errno. */
int arrival_end(struct arrival *arrival, uint64_t size, uint64_t hash);
/* It is: begins to compare. */
void arrival_compare(struct arrival *arrival);
/* Goes on. 1: it is the same; 0: not done yet; -1: it is not, and is to be sent anew. */
int arrival_step(struct arrival *arrival);

#endif
