/* SPDX-License-Identifier: MIT */
/*
 * compressed.h: reads the compressed form of a profile: the bytes that the profile would have had
 * uncompressed, as far as they are there. docs/format.md, "Compressed profiles".
 *
 * Called by analyze/read/profile and runfiles. Any thread.
 */
#ifndef ANALYZE_READ_COMPRESSED_H
#define ANALYZE_READ_COMPRESSED_H

#include "analyze/read/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stddef.h>

/* A writer does not compress what would become so small that a reader, who sees but the file, would
 * have to take it for an attempt to take all its memory. */
static inline uint64_t compressed_most(uint64_t stored_bytes) {
    return (UINT64_C(64) << 20) + (stored_bytes << 11);
}

static inline bool compressed_is(const struct memtrace_header *header) {
    return (header->version & MEMTRACE_FORMAT_COMPRESSED) != 0;
}

/*
 * All header->whole_bytes, in a mapping of their own (pages of zeros take no memory): munmap()
 * them. The header there is that of a profile that is not compressed. tables_only: without counters
 * and tree. What is missing is zeros; `damage` gets one phrase about it. NULL: nothing can be read.
 */
unsigned char *compressed_read(int fd, const char *path, const struct memtrace_header *header,
                               bool tables_only, char *damage, size_t damage_size,
                               struct error *error);

#endif
