/* SPDX-License-Identifier: MIT */
/*
 * block.h: what writers and readers of a recording's blocks (memtrace/recording.h) share.
 *
 * Called by analyze/read and collect. Any thread.
 */
#ifndef ANALYZE_READ_BLOCK_H
#define ANALYZE_READ_BLOCK_H

#include "memtrace/recording.h"

#include <stdbool.h>
#include <stddef.h>

/* The checksum of a block with this header (whatever its checksum field holds) and this payload of
 * stored_size bytes. */
uint64_t block_checksum(const struct memtrace_block_header *block, const void *payload);

/* Bytes of the zeros behind a payload. */
static inline size_t block_padding(const struct memtrace_block_header *block) {
    return -(size_t)block->stored_size & 7;
}

/* Bytes of the whole block: header, payload and padding. */
static inline uint64_t block_size(const struct memtrace_block_header *block) {
    return block->header_size + (uint64_t)block->stored_size + block_padding(block);
}

/* Whether a block of events goes on where the one before it in its stream ended. A full chunk's
 * last word and the next one's first are the same place. */
static inline bool block_goes_on(const struct memtrace_block_header *before,
                                 const struct memtrace_block_header *block) {
    return (block->first_sequence == before->end_sequence &&
            block->first_word == before->end_word) ||
           (block->first_sequence == before->end_sequence + 1 && block->first_word == 0);
}

/* Whether these may be the bytes of a header: magic and sizes that a writer may have written. */
bool block_plausible(const struct memtrace_block_header *block);

#endif
