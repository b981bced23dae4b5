/* SPDX-License-Identifier: MIT */
/* recordfile.c: appending blocks. See recordfile.h. */
#include "collect/recordfile.h"

#include "analyze/base/array.h"
#include "analyze/base/filemode.h"
#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "analyze/read/nodecode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    LEAST_PACKED = 64,
    RESERVE_STEP = 1 << 20, /* reserved at once, where there is that much */
};

/* --- bytes ------------------------------------------------------------------------------------ */

/* Whether the file can be this large and its reserve still be there. */
static bool recordfile_has_room(struct recordfile *file, uint64_t size) {
    uint64_t wanted = size + file->reserve;
    struct rlimit limit;
    if (file->reserve == 0 || wanted <= file->reserved) {
        return true;
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        wanted > limit.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    for (uint64_t more = RESERVE_STEP;; more = 0) {
        if (fallocate(file->fd, FALLOC_FL_KEEP_SIZE, (off_t)file->size,
                      (off_t)(wanted + more - file->size)) == 0) {
            file->reserved = wanted + more;
            return true;
        }
        if (errno != ENOSPC && errno != EDQUOT) {
            return true; /* a file system that cannot: writing tells */
        }
        if (more == 0) {
            return false;
        }
    }
}

void recordfile_reserve(struct recordfile *file, uint64_t bytes) {
    file->reserve = bytes;
}

/* All of it, or nothing is left of it. 0, or -1 with errno. */
static int recordfile_write(struct recordfile *file, struct iovec *parts, int count) {
    uint64_t end = file->size;
    uint64_t whole = end;
    for (int i = 0; i < count; i++) {
        whole += parts[i].iov_len;
    }
    if (!recordfile_has_room(file, whole)) {
        return -1;
    }
    while (count > 0) {
        ssize_t written = pwritev(file->fd, parts, count, (off_t)end);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            int reason = written == 0 ? ENOSPC : errno;
            if (ftruncate(file->fd, (off_t)file->size) != 0) {
                reason = errno; /* a reader sees the torn end by its checksum */
            }
            errno = reason;
            return -1;
        }
        end += (uint64_t)written;
        while (count > 0 && (size_t)written >= parts->iov_len) {
            written -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
    file->size = end;
    return 0;
}

static int failed(struct recordfile *file, struct error *error) {
    file->reason = errno;
    return error_set(error, "cannot write the recording %s: %s", file->path, strerror(errno));
}

/* The bytes to store: the payload itself or, where that is smaller, packed. NULL: no memory. */
static const void *recordfile_pack(struct recordfile *file, enum memtrace_block_kind kind,
                                   const void *payload, size_t size, size_t *stored) {
    size_t bound = BLOCK_PACK_BOUND(size);
    size_t packed;
    *stored = size;
    if (size < LEAST_PACKED) {
        return payload;
    }
    if (file->packed_capacity < bound) {
        free(file->packed);
        file->packed = malloc(bound);
        file->packed_capacity = file->packed != NULL ? bound : 0;
    }
    if (file->zstd == NULL) {
        file->zstd = ZSTD_createCCtx();
    }
    if (file->packed == NULL || file->zstd == NULL) {
        return NULL;
    }
    packed = block_pack(file->zstd, kind, payload, size, file->level, file->packed);
    if (packed == 0 || packed >= size) {
        return payload;
    }
    *stored = packed;
    return file->packed;
}

static int recordfile_note(struct recordfile *file, uint64_t offset,
                           const struct memtrace_block_header *block) {
    if (array_grow(&file->index, &file->index_room, file->index_count, sizeof *file->index) != 0) {
        return -1;
    }
    file->index[file->index_count++] = (struct memtrace_index_entry){offset, *block};
    return 0;
}

int recordfile_append(struct recordfile *file, struct memtrace_block_header *block,
                      const void *payload, size_t size, struct error *error) {
    static const unsigned char zeros[8];
    uint64_t offset = file->size;
    size_t stored;
    const void *bytes;
    if (file->fd < 0) {
        return error_set(error, "the recording %s is closed", file->path);
    }
    bytes = recordfile_pack(file, block->kind, payload, size, &stored);
    if (bytes == NULL || recordfile_note(file, offset, block) != 0) {
        return error_set(error, "out of memory while recording");
    }
    block->magic = MEMTRACE_BLOCK_MAGIC;
    block->header_size = sizeof *block;
    block->stored_size = (uint32_t)stored;
    block->raw_size = (uint32_t)size;
    block->checksum = block_checksum(block, bytes);
    file->index[file->index_count - 1].block = *block;
    struct iovec parts[] = {{block, sizeof *block},
                            {(void *)(uintptr_t)bytes, stored},
                            {(void *)(uintptr_t)zeros, block_padding(block)}};
    if (recordfile_write(file, parts, 3) != 0) {
        file->index_count--;
        return failed(file, error);
    }
    return 0;
}

int recordfile_append_items(struct recordfile *file, enum memtrace_block_kind kind,
                            uint64_t time_ns, const void *items, size_t count, size_t item_size,
                            struct error *error) {
    struct memtrace_block_header block = {
        .kind = (uint16_t)kind, .first_ns = time_ns, .last_ns = time_ns, .items = (uint32_t)count};
    return count != 0 ? recordfile_append(file, &block, items, count * item_size, error) : 0;
}

int recordfile_append_nodes(struct recordfile *file, const struct memtrace_recording_node *nodes,
                            size_t count, uint64_t time_ns, struct error *error) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NODES,
                                          .first_ns = time_ns,
                                          .last_ns = time_ns,
                                          .items = (uint32_t)count};
    struct varint_writer payload = {0};
    int result;
    if (count == 0) {
        return 0;
    }
    result = nodecode_pack(nodes, count, &payload) == 0
                 ? recordfile_append(file, &block, payload.bytes, payload.size, error)
                 : error_set(error, "out of memory");
    free(payload.bytes);
    return result;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Takes the name away from an older file. */
static int recordfile_make_room(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return 0;
    }
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return -1;
    }
    return unlink(path);
}

int recordfile_create(struct recordfile *file, const char *path, enum recordfile_older older,
                      const struct memtrace_recording_header *header, struct error *error) {
    struct iovec parts[] = {{(void *)(uintptr_t)header, sizeof *header}};
    *file = RECORDFILE_NONE;
    snprintf(file->path, sizeof file->path, "%s", path);
    if (older == RECORDFILE_KEEP || recordfile_make_room(path) == 0) {
        file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, filemode());
    }
    if (file->fd < 0) {
        return failed(file, error);
    }
    if (recordfile_write(file, parts, 1) != 0) {
        failed(file, error);
        unlink(path);
        recordfile_release(file);
        return -1;
    }
    return 0;
}

/* Cuts the file behind its last good block, without an index, and takes over what is known of the
 * others. */
static int recordfile_take_over(struct recordfile *file, const struct recording *there) {
    struct recording_buffer buffer = {0};
    size_t count = there->block_count;
    int result = 0;
    while (count > there->sent_blocks &&
           (there->blocks[count - 1].block.kind == MEMTRACE_BLOCK_INDEX ||
            (result = recording_payload(there, count - 1, &buffer, NULL)) < 0)) {
        count--;
    }
    recording_buffer_free(&buffer);
    if (result == RECORDING_NO_MEMORY) {
        errno = ENOMEM;
        return -1;
    }
    file->size = sizeof(struct memtrace_recording_header);
    for (size_t i = 0; i < count; i++) {
        const struct recording_entry *entry = &there->blocks[i];
        if (recordfile_note(file, entry->offset, &entry->block) != 0) {
            errno = ENOMEM;
            return -1;
        }
        file->size = entry->offset + block_size(&entry->block);
    }
    return ftruncate(file->fd, (off_t)file->size);
}

int recordfile_lock(const char *path) {
    const struct timespec pause = {.tv_nsec = 5000000};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    for (int i = 0; i < 200 && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        nanosleep(&pause, NULL);
    }
    return fd;
}

int recordfile_resume(struct recordfile *file, const char *path,
                      const struct memtrace_recording_header *header,
                      const struct memtrace_header *program, struct recording **there,
                      struct error *error) {
    SCOPE_FD int lock = recordfile_lock(path); /* nobody frees what was sent meanwhile (punch.h) */
    int result = 0;
    *file = RECORDFILE_NONE;
    snprintf(file->path, sizeof file->path, "%s", path);
    *there = recording_is(path) ? recording_open_rest(path, NULL) : NULL;
    if (*there != NULL && (*there)->header.pid == header->pid &&
        (*there)->header.process_start_ticks == header->process_start_ticks &&
        (*there)->program.start_monotonic_ns == program->start_monotonic_ns) {
        file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file->fd >= 0 && recordfile_take_over(file, *there) == 0) {
            return 1;
        }
        result = failed(file, error);
        recordfile_release(file);
    }
    recording_close(*there);
    *there = NULL;
    return result;
}

/* --- the end ---------------------------------------------------------------------------------- */

int recordfile_close(struct recordfile *file, struct error *error) {
    struct memtrace_index_end end = {.index_offset = file->size};
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_INDEX,
                                          .items = (uint32_t)file->index_count};
    size_t count = file->index_count;
    SCOPE_MEMORY struct memtrace_index_entry *entries = malloc((count + 1) * sizeof *entries);
    struct iovec parts[] = {{&end, sizeof end}};
    uint64_t size = file->size;
    int result;
    recordfile_reserve(file, 0);
    memcpy(end.magic, MEMTRACE_RECORDING_MAGIC, sizeof end.magic);
    if (entries != NULL && count != 0) {
        memcpy(entries, file->index, count * sizeof *entries);
    }
    result = entries != NULL
                 ? recordfile_append(file, &block, entries, count * sizeof *entries, error)
                 : error_set(error, "out of memory while recording");
    if (result == 0 && recordfile_write(file, parts, 1) != 0) {
        result = failed(file, error);
        if (ftruncate(file->fd, (off_t)size) == 0) {
            file->size = size;
        }
    }
    if (file->reserved != 0 && ftruncate(file->fd, (off_t)file->size) != 0) {
        result = failed(file, error); /* what was reserved and not needed is to be free again */
    }
    recordfile_release(file);
    return result;
}

void recordfile_release(struct recordfile *file) {
    scope_close(&file->fd);
    free(file->index);
    free(file->packed);
    ZSTD_freeCCtx(file->zstd);
    file->fd = -1;
    file->index = NULL;
    file->index_count = file->index_room = 0;
    file->packed = NULL;
    file->packed_capacity = 0;
    file->zstd = NULL;
}
