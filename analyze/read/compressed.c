/* SPDX-License-Identifier: MIT */
/* compressed.c: see compressed.h. */
#include "analyze/read/compressed.h"

#include "analyze/read/blockread.h"
#include "analyze/read/segmentpack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Steps from block to block. Returns where the first break is; 0: there is none. No writer makes
 * more than 10 bytes of 8 before they are compressed: a few small blocks shall not keep us busy. */
static uint64_t read_blocks(int fd, uint64_t file_size, bool tables_only, unsigned char *bytes,
                            uint64_t size) {
    struct recording_buffer buffer = {0};
    struct memtrace_block_header block;
    uint64_t offset = MEMTRACE_HEADER_SIZE;
    uint64_t broken = 0;
    uint64_t left = size * 2;
    while (offset < file_size) {
        enum blockread found = blockread_load(fd, file_size, offset, &block, &buffer);
        if (found == BLOCKREAD_NONE) {
            broken = broken == 0 ? offset : broken;
            offset += 8;
            found = blockread_search(fd, file_size, &offset, &buffer);
            if (found == BLOCKREAD_WHOLE) {
                continue;
            }
        }
        if (found != BLOCKREAD_WHOLE || block.raw_size > left) {
            broken = broken == 0 ? offset : broken;
            break;
        }
        if (block.kind == MEMTRACE_BLOCK_SEGMENTS && (!tables_only || block.items == 0) &&
            (blockread_unpack(&block, &buffer) != 0 ||
             segmentpack_undo(buffer.bytes, buffer.size, bytes, size) != 0)) {
            broken = broken == 0 ? offset : broken;
        }
        left -= block.raw_size;
        offset += block_size(&block);
    }
    recording_buffer_free(&buffer);
    return broken;
}

unsigned char *compressed_read(int fd, const char *path, const struct memtrace_header *header,
                               bool tables_only, char *damage, size_t damage_size,
                               struct error *error) {
    struct memtrace_header *copy;
    struct stat status;
    uint64_t size = header->whole_bytes;
    uint64_t file_size;
    uint64_t broken;
    if (fstat(fd, &status) != 0) {
        error_set(error, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    file_size = (uint64_t)status.st_size;
    if (size < MEMTRACE_HEADER_SIZE || size > compressed_most(file_size)) {
        error_set(error, "%s has a damaged header; the profile cannot be read", path);
        return NULL;
    }
    copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
    if (copy == MAP_FAILED) {
        error_set(error, "out of memory while reading %s", path);
        return NULL;
    }
    broken = read_blocks(fd, file_size, tables_only, (unsigned char *)copy,
                         (size + MEMTRACE_PAGE_SIZE - 1) / MEMTRACE_PAGE_SIZE * MEMTRACE_PAGE_SIZE);
    *copy = *header; /* whatever a block may have put there */
    copy->version &= ~MEMTRACE_FORMAT_COMPRESSED;
    copy->stored_bytes = copy->whole_bytes = 0;
    if (header->stored_bytes > file_size) {
        snprintf(damage, damage_size, "cut off at byte %llu of %llu", (unsigned long long)file_size,
                 (unsigned long long)header->stored_bytes);
    } else if (broken != 0) {
        snprintf(damage, damage_size, "a block at byte %llu is damaged",
                 (unsigned long long)broken);
    }
    return (unsigned char *)copy;
}
