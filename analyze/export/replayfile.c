/* SPDX-License-Identifier: MIT */
/* replayfile.c: reading. See replayfile.h. */
#include "analyze/export/replayfile.h"

#include "analyze/base/fullwrite.h"
#include "analyze/read/filemap.h"
#include "analyze/read/packedin.h"
#include "memtrace/format.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { ALIGNMENT_MOST = 40, SIZE_BITS = 47 };

void replayfile_start(struct replayfile_reader *reader, const struct replayfile *file) {
    *reader = (struct replayfile_reader){
        .bytes = {.next = file->bytes + sizeof(struct replayfile_head),
                  .end = file->bytes + file->size - sizeof(struct replayfile_foot),
                  .failed = &reader->failed}};
}

static bool replayfile_is_sound(const struct replayfile_reader *reader,
                                const struct replayfile_event *event) {
    return !reader->failed && event->operation <= REPLAYFILE_FREE &&
           event->thread < REPLAYFILE_THREADS && event->size >> SIZE_BITS == 0 &&
           event->alignment <= ALIGNMENT_MOST;
}

int replayfile_next(struct replayfile_reader *reader, struct replayfile_event *event) {
    struct varint_reader *bytes = &reader->bytes;
    unsigned char first = varint_get_byte(bytes);
    *event = (struct replayfile_event){.operation = first & 7};
    if (event->operation == REPLAYFILE_END) {
        return reader->failed || bytes->next != bytes->end || first != 0 ? -1 : 0;
    }
    if ((first & ~REPLAYFILE_KNOWN) != 0) {
        return -1;
    }
    if ((first & REPLAYFILE_THREAD) != 0) {
        uint64_t thread = varint_get(bytes);
        reader->thread = thread < REPLAYFILE_THREADS ? (uint32_t)thread : REPLAYFILE_THREADS;
    }
    if ((first & REPLAYFILE_TIME) != 0) {
        reader->time_ns += varint_get(bytes);
    }
    event->thread = reader->thread;
    event->time_ns = reader->time_ns;
    event->slot = varint_get(bytes);
    event->size = event->operation != REPLAYFILE_FREE ? varint_get(bytes) : 0;
    event->alignment = event->operation == REPLAYFILE_ALIGNED ? varint_get_byte(bytes) : 0;
    return replayfile_is_sound(reader, event) ? 1 : -1;
}

/* ---- Checking ---- */

/* Each slot is filled and emptied in turn, and the sums are those that the foot tells. */
static bool replayfile_adds_up(const struct replayfile *file, unsigned char *filled) {
    struct replayfile_foot sums = {.slots = file->foot.slots};
    struct replayfile_reader reader;
    struct replayfile_event event;
    int result;
    replayfile_start(&reader, file);
    while ((result = replayfile_next(&reader, &event)) == 1) {
        bool needs = event.operation == REPLAYFILE_FREE || event.operation == REPLAYFILE_REALLOC;
        if (event.slot >= sums.slots || filled[event.slot] != needs) {
            return false;
        }
        filled[event.slot] = event.operation != REPLAYFILE_FREE;
        sums.events++;
        sums.frees += needs;
        sums.allocations += event.operation != REPLAYFILE_FREE;
        sums.total_bytes += event.size;
    }
    return result == 0 && sums.events == file->foot.events && sums.frees == file->foot.frees &&
           sums.allocations == file->foot.allocations && sums.total_bytes == file->foot.total_bytes;
}

static int replayfile_check(struct replayfile *file, const char *path, struct error *error) {
    const size_t least = sizeof(struct replayfile_head) + sizeof file->foot + 1;
    struct replayfile_head head = {.version = 0};
    unsigned char *filled;
    bool is_whole;
    memcpy(&head, file->bytes, file->size < sizeof head ? file->size : sizeof head);
    if (memcmp(head.magic, REPLAYFILE_MAGIC, sizeof head.magic) != 0) {
        return error_set(error, "%s is not a file of `memtrace export --format replay`", path);
    }
    if (head.version != REPLAYFILE_VERSION || head.byte_order != MEMTRACE_BYTE_ORDER) {
        return error_set(error, "%s is of another version of memtrace", path);
    }
    if (file->size < least) {
        return error_set(error, "%s is cut off", path);
    }
    memcpy(&file->foot, file->bytes + file->size - sizeof file->foot, sizeof file->foot);
    if (memcmp(file->foot.magic, REPLAYFILE_MAGIC, sizeof file->foot.magic) != 0) {
        return error_set(error, "%s is cut off", path);
    }
    if (file->foot.slots > file->size ||
        file->foot.checksum != XXH64(file->bytes, file->size - 2 * sizeof(uint64_t), 0)) {
        return error_set(error, "%s is damaged", path);
    }
    filled = calloc(file->foot.slots + 1, 1);
    if (filled == NULL) {
        return error_set(error, "out of memory");
    }
    is_whole = replayfile_adds_up(file, filled);
    free(filled);
    return is_whole ? 0 : error_set(error, "%s is damaged", path);
}

/* ---- Opening ---- */

static int replayfile_is_none(const char *path, struct error *error) {
    return error_set(error, "%s is not a file of `memtrace export --format replay`", path);
}

/* A few bytes may unpack to more than any memory holds. */
static uint64_t most_bytes(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
}

/* All that comes out into the file; nothing where the beginning is another file's. 0 or -1. */
static int replayfile_unpack_into(int fd, struct packedin *in, const char *path,
                                  struct error *error) {
    const uint64_t most = most_bytes();
    uint64_t all = 0;
    const void *bytes;
    size_t size;
    while ((bytes = packedin_bytes(in, &size)) != NULL) {
        if (all == 0 && (size < 8 || memcmp(bytes, REPLAYFILE_MAGIC, 8) != 0)) {
            return replayfile_is_none(path, error);
        }
        all += size;
        if (all > most) {
            return error_set(error, "%s needs more memory than there is once it is unpacked", path);
        }
        if (fullwrite(fd, bytes, size) != 0) {
            return error_set(error, "cannot unpack %s: %s", path, strerror(errno));
        }
    }
    if (packedin_break(in) != NULL) {
        return error_set(error, "%s cannot be unpacked: %s", path, packedin_break(in));
    }
    return all != 0 ? 0 : replayfile_is_none(path, error);
}

/* Into memory, as a file: the processes that repeat it shall not unpack it once more, since they
 * measure what memory they have. 0 or -1. */
static int replayfile_unpack(struct replayfile *file, const char *path, struct error *error) {
    struct packedin *in = packedin_open(path, error);
    int result;
    if (in == NULL) {
        return -1;
    }
    file->unpacked = memfd_create("memtrace-replay", 0);
    result = file->unpacked < 0 ? error_set(error, "cannot unpack %s: %s", path, strerror(errno))
                                : replayfile_unpack_into(file->unpacked, in, path, error);
    packedin_close(in);
    return result;
}

static int replayfile_map(struct replayfile *file, int fd, const char *path, struct error *error) {
    struct stat status;
    void *bytes = NULL;
    if (fstat(fd, &status) == 0) {
        if (!S_ISREG(status.st_mode) || status.st_size == 0) {
            return replayfile_is_none(path, error);
        }
        bytes = filemap_open(fd, 0, (uint64_t)status.st_size, FILEMAP_COPIES);
    }
    if (bytes == NULL) {
        return error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    file->bytes = bytes;
    file->size = (size_t)status.st_size;
    return 0;
}

static int replayfile_map_file(struct replayfile *file, const char *path, struct error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char head[8];
    ssize_t size;
    int result;
    if (fd < 0) {
        return error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    size = pread(fd, head, sizeof head, 0);
    if (size > 0 && packedin_is_packed(head, (size_t)size)) {
        result = replayfile_unpack(file, path, error);
        result = result == 0 ? replayfile_map(file, file->unpacked, path, error) : result;
    } else {
        result = replayfile_map(file, fd, path, error);
    }
    close(fd);
    return result;
}

int replayfile_open(struct replayfile *file, const char *path, struct error *error) {
    *file = (struct replayfile){.unpacked = -1};
    if (replayfile_map_file(file, path, error) != 0 || replayfile_check(file, path, error) != 0) {
        replayfile_close(file);
        return -1;
    }
    return 0;
}

void replayfile_close(struct replayfile *file) {
    if (file->bytes != NULL) {
        filemap_close((void *)(uintptr_t)file->bytes, file->size);
    }
    if (file->unpacked >= 0) {
        close(file->unpacked);
    }
    *file = (struct replayfile){.unpacked = -1};
}
