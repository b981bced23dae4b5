/* SPDX-License-Identifier: MIT */
/*
 * block.h: the blocks of a recording or a compressed profile (memtrace/recording.h): checksums,
 * reading and unpacking single ones, finding the next whole one behind damage, and compressing.
 *
 * Called by analyze/read and collect. Any thread, each with a buffer of its own.
 */
#ifndef ANALYZE_READ_BLOCK_H
#define ANALYZE_READ_BLOCK_H

#include "memtrace/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <zstd.h>

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

/* ---- Reading ---- */

/* A growing buffer for one block after the other. Start from {0}. */
struct recording_buffer {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
    unsigned char *stored; /* as in the file */
    size_t stored_capacity;
    void *context; /* zstd's */
};
void recording_buffer_free(struct recording_buffer *buffer);
/* One that is freed when the present job ends; or by job_undo_now(). */
struct recording_buffer *recording_buffer_new(void);

enum block_status {
    BLOCK_WHOLE,
    BLOCK_NONE,  /* no block, a damaged one, or one that is not there as a whole */
    BLOCK_ERROR, /* errno: the file cannot be read, or no memory */
};

/* Up to `size` bytes of the file; fewer at its end. -1: errno. */
ssize_t block_read_at(int fd, void *bytes, size_t size, uint64_t offset);

/* The beginning of a file of ours, of this kind ("profile"), which begins with the magic; in a job.
 * cut: what its being cut off inside that means. The file's size. */
uint64_t block_read_header(int fd, const char *path, const char *kind, const char *cut,
                           const char magic[8], void *header, size_t size);

/* The block at this place of a file of so many bytes; its payload as stored into buffer->stored. */
enum block_status block_load(int fd, uint64_t file_size, uint64_t offset,
                             struct memtrace_block_header *block, struct recording_buffer *buffer);

/* Where the next whole block begins, from *offset, a multiple of 8, on. Each candidate is read as a
 * whole, so a file full of false ones is given up at some time. */
enum block_status block_search(int fd, uint64_t file_size, uint64_t *offset,
                               struct recording_buffer *buffer);

/* buffer->stored into buffer->bytes. 0, or -1: damaged, or no memory (errno
 * ENOMEM). */
int block_unpack(const struct memtrace_block_header *block, struct recording_buffer *buffer);

/* ---- Compressing: any zstd frame will do for a reader; this one begins something new with each
 * large column, because what tells one column's bytes is wrong about the next one's: 4 to 7 %
 * smaller, at no cost ---- */

/* Of zstd, for files that are written while the program runs: 3 takes half as long again and saves
 * less than 1 %. */
enum { BLOCK_PACK_LEVEL = 1 };

/* Into `packed`, which has room for BLOCK_PACK_BOUND(size). Returns the size; 0: it failed. */
#define BLOCK_PACK_BOUND(size) (ZSTD_compressBound(size) + 1024)
size_t block_pack(ZSTD_CCtx *context, enum memtrace_block_kind kind, const void *payload,
                  size_t size, int level, void *packed);

#endif
