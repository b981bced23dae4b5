/* SPDX-License-Identifier: MIT */
/*
 * compress.h: writes a profile compressed: docs/format.md, "Compressed profiles".
 *
 * Called by collect/copy, collect/profilewrite and cli/repack. In as many threads as there are
 * processors, up to four.
 */
#ifndef COLLECT_COMPRESS_H
#define COLLECT_COMPRESS_H

#include <stdint.h>

/* Where the uncompressed bytes are: in memory, or, where that is NULL, in a file. */
struct compress_source {
    const unsigned char *bytes;
    int fd;
    uint64_t size; /* at least the header's */
};

enum compress_status {
    COMPRESS_DONE = 0,
    COMPRESS_FAILED = -1, /* errno */
    COMPRESS_SMALL = 1, /* it would look like an attack on its readers: it is to be left as it is */
};

/* Writes the file `to`, which is empty. `level` is zstd's. */
enum compress_status compress_profile(const struct compress_source *from, int level, int to);

/* The same of bytes in memory, which are written as they are where that is COMPRESS_SMALL. 0, or
 * -1 with errno. */
int compress_or_store(const struct compress_source *from, int level, int to);

/* Bytes in memory, as they are. 0, or -1 with errno. */
int compress_store(const struct compress_source *from, int to);

#endif
