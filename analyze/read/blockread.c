/* SPDX-License-Identifier: MIT */
/* blockread.c: single blocks of a recording. See blockread.h. */
#include "analyze/read/blockread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum {
    WINDOW = 1 << 16, /* bytes looked at in one go where blocks are searched */
    PATIENCE = 16,    /* how often a search may read the file's bytes for nothing */
};

ssize_t blockread_at(int fd, void *bytes, size_t size, uint64_t offset) {
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return -1;
        }
        if (count == 0) {
            break;
        }
        done += (size_t)count;
    }
    return (ssize_t)done;
}

static int ensure(unsigned char **bytes, size_t *capacity, size_t wanted) {
    unsigned char *grown;
    if (wanted <= *capacity) {
        return 0;
    }
    grown = realloc(*bytes, wanted);
    if (grown == NULL) {
        return -1;
    }
    *bytes = grown;
    *capacity = wanted;
    return 0;
}

void recording_buffer_free(struct recording_buffer *buffer) {
    free(buffer->bytes);
    free(buffer->stored);
    ZSTD_freeDCtx(buffer->context);
    *buffer = (struct recording_buffer){0};
}

enum blockread blockread_load(int fd, uint64_t file_size, uint64_t offset,
                              struct memtrace_block_header *block,
                              struct recording_buffer *buffer) {
    ssize_t count = blockread_at(fd, block, sizeof *block, offset);
    if (count < 0) {
        return BLOCKREAD_TROUBLE;
    }
    if ((size_t)count < sizeof *block || !block_plausible(block) ||
        block_size(block) > file_size - offset) {
        return BLOCKREAD_NONE;
    }
    if (ensure(&buffer->stored, &buffer->stored_capacity, block->stored_size) != 0) {
        errno = ENOMEM;
        return BLOCKREAD_TROUBLE;
    }
    count = blockread_at(fd, buffer->stored, block->stored_size, offset + sizeof *block);
    if (count < 0) {
        return BLOCKREAD_TROUBLE;
    }
    return (size_t)count == block->stored_size &&
                   block_checksum(block, buffer->stored) == block->checksum
               ? BLOCKREAD_WHOLE
               : BLOCKREAD_NONE;
}

enum blockread blockread_search(int fd, uint64_t file_size, uint64_t *offset,
                                struct recording_buffer *buffer) {
    uint32_t window[WINDOW / sizeof(uint32_t)];
    uint64_t wasted = 0;
    for (; *offset < file_size; *offset += WINDOW) {
        ssize_t count = blockread_at(fd, window, sizeof window, *offset);
        if (count < 0) {
            return BLOCKREAD_TROUBLE;
        }
        for (size_t i = 0; i + sizeof(uint32_t) <= (size_t)count; i += 8) {
            struct memtrace_block_header block = {0};
            enum blockread found;
            if (window[i / sizeof(uint32_t)] != MEMTRACE_BLOCK_MAGIC) {
                continue;
            }
            found = blockread_load(fd, file_size, *offset + i, &block, buffer);
            if (found != BLOCKREAD_NONE) {
                *offset += i;
                return found;
            }
            wasted += sizeof block + (block.stored_size < file_size ? block.stored_size : 0);
            if (wasted / PATIENCE > file_size) {
                return BLOCKREAD_NONE;
            }
        }
    }
    return BLOCKREAD_NONE;
}

int blockread_unpack(const struct memtrace_block_header *block, struct recording_buffer *buffer) {
    size_t size;
    if (ensure(&buffer->bytes, &buffer->capacity, block->raw_size) != 0) {
        return -1;
    }
    buffer->size = block->raw_size;
    if (block->stored_size == block->raw_size) {
        if (block->raw_size != 0) {
            memcpy(buffer->bytes, buffer->stored, block->raw_size);
        }
        return 0;
    }
    if (buffer->context == NULL && (buffer->context = ZSTD_createDCtx()) == NULL) {
        return -1;
    }
    size = ZSTD_decompressDCtx(buffer->context, buffer->bytes, buffer->capacity, buffer->stored,
                               block->stored_size);
    return size == block->raw_size ? 0 : -1;
}
