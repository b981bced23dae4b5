/* SPDX-License-Identifier: MIT */
/* block.c: see block.h. */
#include "analyze/read/block.h"

#include "analyze/base/job.h"
#include "analyze/read/nodecode.h"
#include "analyze/read/predict.h"
#include "analyze/read/segmentpack.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

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

/* ---- Reading ---- */

enum {
    WINDOW = 1 << 16,  /* bytes looked at in one go where blocks are searched */
    REREADS_MOST = 16, /* how often a search may read the file's bytes for nothing */
};

ssize_t block_read_at(int fd, void *bytes, size_t size, uint64_t offset) {
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

uint64_t block_read_header(int fd, const char *path, const char *kind, const char *cut,
                           const char magic[8], void *header, size_t size) {
    struct stat status;
    ssize_t count = fstat(fd, &status) == 0 ? 0 : -1;
    if (count == 0 && !S_ISREG(status.st_mode)) {
        job_fail("%s is %s, not a %s", path,
                 S_ISDIR(status.st_mode) ? "a folder" : "a special file", kind);
    }
    if (count == 0) {
        count = block_read_at(fd, header, size, 0);
    }
    if (count < 0) {
        job_fail("cannot read %s: %s", path, strerror(errno));
    }
    if (count < 8 || memcmp(header, magic, 8) != 0) {
        job_fail("%s is not a MemTrace %s%s", path, kind, count == 0 ? ", it is empty" : "");
    }
    if ((size_t)count < size) {
        job_fail("%s is cut off inside its header, at byte %zd of %zu%s", path, count, size, cut);
    }
    return (uint64_t)status.st_size;
}

static int block_reserve(unsigned char **bytes, size_t *capacity, size_t wanted) {
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

static void recording_buffer_undo(void *buffer) {
    recording_buffer_free(buffer);
}

struct recording_buffer *recording_buffer_new(void) {
    struct recording_buffer *buffer = job_alloc(sizeof *buffer);
    job_undo(recording_buffer_undo, buffer);
    return buffer;
}

enum block_status block_load(int fd, uint64_t file_size, uint64_t offset,
                             struct memtrace_block_header *block, struct recording_buffer *buffer) {
    ssize_t count = block_read_at(fd, block, sizeof *block, offset);
    if (count < 0) {
        return BLOCK_ERROR;
    }
    if ((size_t)count < sizeof *block || !block_plausible(block) ||
        block_size(block) > file_size - offset) {
        return BLOCK_NONE;
    }
    if (block_reserve(&buffer->stored, &buffer->stored_capacity, block->stored_size) != 0) {
        errno = ENOMEM;
        return BLOCK_ERROR;
    }
    count = block_read_at(fd, buffer->stored, block->stored_size, offset + sizeof *block);
    if (count < 0) {
        return BLOCK_ERROR;
    }
    return (size_t)count == block->stored_size &&
                   block_checksum(block, buffer->stored) == block->checksum
               ? BLOCK_WHOLE
               : BLOCK_NONE;
}

enum block_status block_search(int fd, uint64_t file_size, uint64_t *offset,
                               struct recording_buffer *buffer) {
    uint32_t window[WINDOW / sizeof(uint32_t)];
    uint64_t wasted = 0;
    for (; *offset < file_size; *offset += WINDOW) {
        ssize_t count = block_read_at(fd, window, sizeof window, *offset);
        if (count < 0) {
            return BLOCK_ERROR;
        }
        for (size_t i = 0; i + sizeof(uint32_t) <= (size_t)count; i += 8) {
            struct memtrace_block_header block = {0};
            enum block_status found;
            if (window[i / sizeof(uint32_t)] != MEMTRACE_BLOCK_MAGIC) {
                continue;
            }
            found = block_load(fd, file_size, *offset + i, &block, buffer);
            if (found != BLOCK_NONE) {
                *offset += i;
                return found;
            }
            wasted += sizeof block + (block.stored_size < file_size ? block.stored_size : 0);
            if (wasted / REREADS_MOST > file_size) {
                return BLOCK_NONE;
            }
        }
    }
    return BLOCK_NONE;
}

int block_unpack(const struct memtrace_block_header *block, struct recording_buffer *buffer) {
    size_t size;
    if (block_reserve(&buffer->bytes, &buffer->capacity, block->raw_size) != 0) {
        errno = ENOMEM;
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
        errno = ENOMEM;
        return -1;
    }
    size = ZSTD_decompressDCtx(buffer->context, buffer->bytes, buffer->capacity, buffer->stored,
                               block->stored_size);
    return size == block->raw_size ? 0 : -1;
}

/* ---- Compressing ---- */

enum { LARGE = 2048 }; /* bytes of a column that are worth a beginning of their own */

static size_t block_columns(enum memtrace_block_kind kind) {
    return kind == MEMTRACE_BLOCK_EVENTS     ? COLUMNS
           : kind == MEMTRACE_BLOCK_NODES    ? NODECODE_COLUMNS
           : kind == MEMTRACE_BLOCK_SEGMENTS ? SEGMENTPACK_COLUMNS
                                             : 0;
}

/* Where the column ends, given where the one before does; never behind the payload. */
static size_t column_end(const void *payload, size_t size, size_t column, size_t before) {
    uint32_t bytes;
    memcpy(&bytes, (const char *)payload + column * sizeof bytes, sizeof bytes);
    return bytes < size - before ? before + bytes : size;
}

size_t block_pack(ZSTD_CCtx *context, enum memtrace_block_kind kind, const void *payload,
                  size_t size, int level, void *packed) {
    ZSTD_outBuffer out = {packed, BLOCK_PACK_BOUND(size), 0};
    ZSTD_inBuffer in = {payload, 0, 0};
    size_t columns = size >= LARGE ? block_columns(kind) : 0;
    size_t end = columns * sizeof(uint32_t);
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setPledgedSrcSize(context, size);
    for (size_t i = 0; i < columns; i++) {
        size_t start = end;
        end = column_end(payload, size, i, start);
        if (end - start >= LARGE) {
            in.size = end;
            if (ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush) != 0) {
                return 0;
            }
        }
    }
    in.size = size;
    return ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) == 0 ? out.pos : 0;
}
