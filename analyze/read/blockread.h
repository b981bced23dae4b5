/* SPDX-License-Identifier: MIT */
/*
 * blockread.h: reads, checks and unpacks single blocks of a recording, and finds the next whole one
 * behind damage.
 *
 * Called by recording.c and by collect where it goes on with a file. Any thread, each with a buffer
 * of its own.
 */
#ifndef ANALYZE_READ_BLOCKREAD_H
#define ANALYZE_READ_BLOCKREAD_H

#include "analyze/read/block.h"
#include "analyze/read/recording.h"

#include <sys/types.h>

enum blockread {
    BLOCKREAD_WHOLE,
    BLOCKREAD_NONE,    /* no block, a damaged one, or one that is not there as a whole */
    BLOCKREAD_TROUBLE, /* errno: the file cannot be read, or no memory */
};

/* Up to `size` bytes of the file; fewer at its end. -1: errno. */
ssize_t blockread_at(int fd, void *bytes, size_t size, uint64_t offset);

/* The block at this place of a file of so many bytes; its payload as stored into buffer->stored. */
enum blockread blockread_load(int fd, uint64_t file_size, uint64_t offset,
                              struct memtrace_block_header *block, struct recording_buffer *buffer);

/* Where the next whole block begins, from *offset, a multiple of 8, on. Each candidate is read as a
 * whole, so a file full of false ones is given up at some time. */
enum blockread blockread_search(int fd, uint64_t file_size, uint64_t *offset,
                                struct recording_buffer *buffer);

/* buffer->stored into buffer->bytes. 0, or -1: damaged, or no memory. */
int blockread_unpack(const struct memtrace_block_header *block, struct recording_buffer *buffer);

#endif
