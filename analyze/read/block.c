/* SPDX-License-Identifier: MIT */
/* block.c: checksums and limits of blocks. See block.h. */
#include "analyze/read/block.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t block_checksum(const struct memtrace_block_header *block, const void *payload) {
    struct memtrace_block_header header = *block;
    XXH3_state_t state;
    header.checksum = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &header, sizeof header);
    XXH3_64bits_update(&state, payload, block->stored_size);
    return XXH3_64bits_digest(&state);
}

bool block_plausible(const struct memtrace_block_header *block) {
    return block->magic == MEMTRACE_BLOCK_MAGIC && block->header_size == sizeof *block &&
           block->stored_size <= MEMTRACE_BLOCK_MOST && block->raw_size <= MEMTRACE_BLOCK_MOST &&
           block->stored_size <= block->raw_size &&
           (block->kind != MEMTRACE_BLOCK_EVENTS || block->items <= MEMTRACE_BLOCK_EVENTS_MOST);
}
