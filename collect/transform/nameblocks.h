/* SPDX-License-Identifier: MIT */
/*
 * nameblocks.h: writes what frames are called into a recording (MEMTRACE_BLOCK_NAMES).
 *
 * Called by collect/transform/anonymize, collect/transform/merge and collect/importer. One thread.
 */
#ifndef COLLECT_TRANSFORM_NAMEBLOCKS_H
#define COLLECT_TRANSFORM_NAMEBLOCKS_H

#include "analyze/read/framenames.h"
#include "collect/recordfile.h"

struct nameblocks;

/* Blocks go to the file as they are full; the rest with nameblocks_close(). NULL: out of memory. */
struct nameblocks *nameblocks_new(struct recordfile *file);

/* All names of a frame, innermost first; their texts are copied. 0 or -1. */
int nameblocks_add(struct nameblocks *blocks, const struct framename *names, size_t count,
                   struct error *error);

/* Writes what is left, and frees. finish false: it only frees. 0 or -1. */
int nameblocks_close(struct nameblocks *blocks, bool finish, struct error *error);

#endif
