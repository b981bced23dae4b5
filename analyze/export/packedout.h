/* SPDX-License-Identifier: MIT */
/*
 * packedout.h: a stream that packs what is written to it into another one.
 *
 * Used inside analyze/export, in its jobs.
 */
#ifndef ANALYZE_EXPORT_PACKEDOUT_H
#define ANALYZE_EXPORT_PACKEDOUT_H

#include <stdio.h>

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

/* How a file of this name is packed: gzip where it ends in .gz, zstd in .zst; NULL: zstd. */
enum packing packing_of(const char *name);

/* Its `stream` is to be written to: `out` itself where nothing is packed. It belongs to the job, at
 * whose end it is closed if it is still open. Whether all went well ferror(out) and
 * packedout_close() tell. */
struct packedout {
    FILE *stream;
    FILE *out;
};
struct packedout *packedout_open(FILE *out, enum packing packing);

/* Writes what is left; `out` stays open. 0, or -1: something could not be written. */
int packedout_close(struct packedout *packed);

#endif
