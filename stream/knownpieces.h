/* SPDX-License-Identifier: MIT */
/*
 * knownpieces.h: bytes that stand in recordings which were received, by their digest: symbols of a
 * program file come over the network once, not once with each process that runs it.
 *
 * Called by stream/incoming. Belongs to one thread. Nothing but the recordings is kept on the disk:
 * whoever is begun again knows nothing, and learns it as they come.
 */
#ifndef STREAM_KNOWNPIECES_H
#define STREAM_KNOWNPIECES_H

#include "stream/arrival.h"

enum { KNOWNPIECES_MOST = 4096 }; /* then the oldest make room */

struct knownpieces;

struct knownpieces *knownpieces_new(void);        /* NULL: out of memory */
void knownpieces_free(struct knownpieces *known); /* NULL is allowed */

/* The recording that has them may be gone, or somebody may have changed it: they are looked at, all
 * of them. What is not there any more is forgotten. */
bool knownpieces_has(struct knownpieces *known, int folder, const struct wire_piece *piece);
/* They stand at this offset of a recording. Without memory nothing is kept. */
void knownpieces_add(struct knownpieces *known, const struct wire_piece *piece, const char *name,
                     uint64_t offset);
/* Writes them as what comes next, as they are now: whoever was told that they are here compares
 * the whole file at its end. 1: written; 0: they are not there any more; -1: errno of writing. */
int knownpieces_write(const struct knownpieces *known, int folder, const struct wire_piece *piece,
                      struct arrival *arrival);

#endif
