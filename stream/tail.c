/* SPDX-License-Identifier: MIT */
/* tail.c: follows a recording. See tail.h. */
#include "stream/tail.h"

#include "analyze/read/region.h"

#include <string.h>
#include <sys/stat.h>

#define QUIET_NS (UINT64_C(2) * 1000000000u) /* who goes on with a file needs less to open it */
enum { LOOK_BYTES = 1 << 24 };

void tail_start(struct tail *tail, int fd) {
    *tail = (struct tail){.fd = fd};
}

void tail_end(struct tail *tail) {
    recording_buffer_free(&tail->buffer);
}

/* Whether this index is the end of a file that was closed. */
static bool tail_is_last(const struct tail *tail, uint64_t offset,
                         const struct memtrace_block_header *block) {
    struct memtrace_index_end end;
    uint64_t behind = offset + block_size(block);
    return tail->size == behind + sizeof end &&
           block_read_at(tail->fd, &end, sizeof end, behind) == (ssize_t)sizeof end &&
           end.index_offset == offset &&
           memcmp(end.magic, MEMTRACE_RECORDING_MAGIC, sizeof end.magic) == 0;
}

/* Steps over whole blocks. 0 or -1. */
static int tail_step(struct tail *tail) {
    struct memtrace_block_header block;
    tail->indexed = false;
    uint64_t stop = tail->steady + LOOK_BYTES;
    while (tail->steady < stop) {
        enum block_status status =
            block_load(tail->fd, tail->size, tail->steady, &block, &tail->buffer);
        if (status == BLOCK_ERROR) {
            return -1;
        }
        if (status == BLOCK_NONE) {
            break;
        }
        if (block.kind == MEMTRACE_BLOCK_INDEX) {
            tail->indexed = tail_is_last(tail, tail->steady, &block);
            tail->ended = tail->indexed && !tail->leaves_index;
            break;
        }
        if (tail->passed != NULL && tail->passed(tail->context, tail->steady, &block) != 0) {
            return -1;
        }
        tail->steady += block_size(&block);
    }
    return 0;
}

/* Whether somebody writes, or may go on: a program's collector may have been killed. Where the
 * kernel cannot tell, as long as the program runs. */
bool tail_is_written(int fd) {
    struct memtrace_recording_header header;
    bool unknown;
    return region_is_written(fd, &unknown) ||
           (block_read_at(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
            region_alive((pid_t)header.pid, header.process_start_ticks));
}

int tail_look(struct tail *tail, uint64_t now_ns) {
    struct stat status;
    bool grew;
    if (tail->ended) {
        return 0;
    }
    if (fstat(tail->fd, &status) != 0) {
        return -1;
    }
    grew = (uint64_t)status.st_size != tail->size;
    tail->size = (uint64_t)status.st_size;
    if (tail->steady == 0 && tail->size >= sizeof(struct memtrace_recording_header)) {
        tail->steady = sizeof(struct memtrace_recording_header);
    }
    uint64_t before = tail->steady;
    if (tail->steady != 0 && tail_step(tail) != 0) {
        return -1;
    }
    if (tail->ended) {
        tail->steady = tail->size;
        return 0;
    }
    if (grew || tail->indexed || tail->steady != before || tail_is_written(tail->fd)) {
        tail->quiet_since_ns = 0;
    } else if (tail->quiet_since_ns == 0) {
        tail->quiet_since_ns = now_ns;
    } else if (now_ns - tail->quiet_since_ns >= QUIET_NS) {
        tail->ended = true;
        tail->steady = tail->size;
    }
    return 0;
}
