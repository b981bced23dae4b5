/* SPDX-License-Identifier: MIT */
/*
 * compress.c: see compress.h. The profile is cut into windows at the bounds of segments. Each
 * thread takes the next window, packs it, and waits for its turn to append what came of it: so the
 * file is the same however many threads there were.
 */
#include "collect/compress.h"

#include "analyze/base/array.h"
#include "analyze/base/fullwrite.h"
#include "analyze/base/scope.h"
#include "analyze/base/threadstart.h"
#include "analyze/read/block.h"
#include "analyze/read/budget.h"
#include "analyze/read/profile.h"
#include "analyze/read/segmentpack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW = 4 << 20, /* bytes, or as many as its last segment has beyond */
    LARGEST = 32 << 20,
    PACKS = 8, /* forms there can be */
    THREADS = 4,
    LEAST = 64, /* bytes worth packing */
};

struct window {
    uint64_t start;
    uint64_t end;
};

struct job {
    const struct compress_source *from;
    int level;
    int to;
    struct window *windows;
    size_t window_count;
    size_t window_room;
    atomic_size_t next;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t turned;
    size_t turn; /* the window that is to be appended next */
    uint64_t written;
    uint64_t pages; /* that readers will have to make */
    int reason;     /* errno of the first failure; 0: none */
};

/* What a thread needs to pack a window. */
struct worker {
    unsigned char *bytes;
    size_t room;
    struct segmentpack packs[PACKS];
    size_t pack_count;
    struct varint_writer payload;
    struct varint_writer blocks;
    ZSTD_CCtx *zstd;
};

/* ---- Windows ---- */

/* 0, or -1 with errno. What a file does not have is zeros. */
static int read_bytes(const struct compress_source *from, void *bytes, size_t size,
                      uint64_t offset) {
    ssize_t count;
    if (from->bytes != NULL) {
        memcpy(bytes, from->bytes + offset, size);
        return 0;
    }
    count = block_read_at(from->fd, bytes, size, offset);
    if (count >= 0) {
        memset((char *)bytes + count, 0, size - (size_t)count);
    }
    return count < 0 ? -1 : 0;
}

/* The bytes of the segment that starts here; of what is none, a page's. */
static uint64_t segment_size(const struct memtrace_segment *segment, uint64_t room) {
    return segment->magic == MEMTRACE_SEGMENT_MAGIC && segment->size >= MEMTRACE_PAGE_SIZE &&
                   segment->size % MEMTRACE_PAGE_SIZE == 0 && segment->size <= room &&
                   segment->size <= LARGEST
               ? segment->size
               : MEMTRACE_PAGE_SIZE;
}

static int plan(struct job *job) {
    uint64_t size = job->from->size;
    uint64_t at = MEMTRACE_HEADER_SIZE;
    while (at < size) {
        struct window window = {at, at};
        while (at < size && at - window.start < WINDOW) {
            struct memtrace_segment segment = {0};
            if (size - at >= sizeof segment &&
                read_bytes(job->from, &segment, sizeof segment, at) != 0) {
                return -1;
            }
            at += segment_size(&segment, size - at);
        }
        window.end = at < size ? at : size;
        if (array_grow(&job->windows, &job->window_room, job->window_count, sizeof *job->windows) !=
            0) {
            errno = ENOMEM;
            return -1;
        }
        job->windows[job->window_count++] = window;
    }
    return 0;
}

/* ---- One window ---- */

static int append_block(struct worker *worker, struct segmentpack *pack, int level) {
    struct memtrace_block_header block = {.magic = MEMTRACE_BLOCK_MAGIC,
                                          .kind = MEMTRACE_BLOCK_SEGMENTS,
                                          .header_size = sizeof block,
                                          .items = pack->form.count};
    struct varint_writer *blocks = &worker->blocks;
    static const char zeros[8];
    unsigned char *stored;
    size_t packed = 0;
    worker->payload.size = 0;
    if (segmentpack_end(pack, &worker->payload) != 0 ||
        worker->payload.size > MEMTRACE_BLOCK_MOST ||
        !varint_room(blocks, sizeof block + BLOCK_PACK_BOUND(worker->payload.size) + 8)) {
        return -1;
    }
    stored = blocks->bytes + blocks->size + sizeof block;
    if (worker->payload.size >= LEAST) {
        packed = block_pack(worker->zstd, MEMTRACE_BLOCK_SEGMENTS, worker->payload.bytes,
                            worker->payload.size, level, stored);
    }
    if (packed == 0 || packed >= worker->payload.size) {
        packed = worker->payload.size;
        memcpy(stored, worker->payload.bytes, packed);
    }
    block.raw_size = (uint32_t)worker->payload.size;
    block.stored_size = (uint32_t)packed;
    block.checksum = block_checksum(&block, stored);
    memcpy(blocks->bytes + blocks->size, &block, sizeof block);
    blocks->size += sizeof block + packed;
    varint_put_bytes(blocks, zeros, block_padding(&block));
    return 0;
}

/* Into worker->blocks. 0 or -1: out of memory. */
static int pack_window(struct worker *worker, const struct window *window, int level) {
    uint64_t size = (window->end - window->start + MEMTRACE_PAGE_SIZE - 1) & ~(uint64_t)4095;
    for (uint64_t at = 0; at < size;) {
        const struct memtrace_segment *segment = (const void *)(worker->bytes + at);
        uint64_t bytes = segment_size(segment, size - at);
        struct segmentpack_form form = {.count = 0};
        size_t pack = 0;
        if (segment->magic == MEMTRACE_SEGMENT_MAGIC) {
            form = segmentpack_form(segment->kind, segment->item_size);
        }
        while (pack < worker->pack_count && !segmentpack_same(&worker->packs[pack].form, &form)) {
            pack++;
        }
        if (pack == PACKS) {
            return -1;
        }
        if (pack == worker->pack_count) {
            worker->packs[worker->pack_count++].form = form;
        }
        segmentpack_add(&worker->packs[pack], worker->bytes + at,
                        (window->start + at) / MEMTRACE_PAGE_SIZE, bytes / MEMTRACE_PAGE_SIZE);
        at += bytes;
    }
    worker->blocks.size = 0;
    for (size_t i = 0; i < worker->pack_count; i++) {
        if (worker->packs[i].end != 0 && append_block(worker, &worker->packs[i], level) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Threads ---- */

/* Waits for its turn. `reason` is the errno with which the window failed, or 0. */
static void compress_append(struct job *job, size_t number, const struct worker *worker,
                            int reason) {
    pthread_mutex_lock(&job->lock);
    while (job->turn != number) {
        pthread_cond_wait(&job->turned, &job->lock);
    }
    if (job->reason == 0 && reason == 0 &&
        fullwrite_at(job->to, worker->blocks.bytes, worker->blocks.size, job->written) != 0) {
        reason = errno;
    }
    job->reason = job->reason != 0 ? job->reason : reason;
    job->written += worker->blocks.size;
    job->turn++;
    pthread_cond_broadcast(&job->turned);
    pthread_mutex_unlock(&job->lock);
}

static void *compress_work(void *context) {
    struct job *job = context;
    struct worker worker = {.zstd = ZSTD_createCCtx()};
    size_t number;
    while ((number = atomic_fetch_add(&job->next, 1)) < job->window_count) {
        const struct window *window = &job->windows[number];
        size_t size = window->end - window->start;
        int reason = 0;
        if (worker.zstd == NULL ||
            array_reserve(&worker.bytes, &worker.room, size + MEMTRACE_PAGE_SIZE, 1) != 0) {
            reason = ENOMEM;
        } else if (read_bytes(job->from, worker.bytes, size, window->start) != 0) {
            reason = errno;
        } else {
            memset(worker.bytes + size, 0, MEMTRACE_PAGE_SIZE);
            reason = pack_window(&worker, window, job->level) == 0 ? 0 : ENOMEM;
        }
        compress_append(job, number, &worker, reason);
    }
    pthread_mutex_lock(&job->lock);
    for (size_t i = 0; i < PACKS; i++) {
        job->pages += worker.packs[i].pages;
    }
    pthread_mutex_unlock(&job->lock);
    for (size_t i = 0; i < PACKS; i++) {
        segmentpack_free(&worker.packs[i]);
    }
    free(worker.bytes);
    free(worker.payload.bytes);
    free(worker.blocks.bytes);
    ZSTD_freeCCtx(worker.zstd);
    return NULL;
}

/* Where no thread can be had this one does it all. Signals are for this one alone. */
static void work_together(struct job *job) {
    pthread_t helpers[THREADS - 1];
    size_t count = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    while (count < THREADS - 1 && (long)count + 1 < processors && count + 1 < job->window_count &&
           threadstart(&helpers[count], NULL, compress_work, job) == 0) {
        count++;
    }
    compress_work(job);
    while (count > 0) {
        pthread_join(helpers[--count], NULL);
    }
}

/* The header last, since it says how long the file is. */
enum compress_status compress_profile(const struct compress_source *from, int level, int to) {
    SCOPE_MEMORY struct memtrace_header *header = malloc(sizeof *header);
    struct job job = {.from = from,
                      .level = level,
                      .to = to,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .turned = PTHREAD_COND_INITIALIZER,
                      .written = MEMTRACE_HEADER_SIZE};
    bool is_planned =
        header != NULL && read_bytes(from, header, sizeof *header, 0) == 0 && plan(&job) == 0;
    if (is_planned) {
        work_together(&job);
        errno = job.reason;
    }
    free(job.windows);
    if (!is_planned || job.reason != 0) {
        return COMPRESS_FAILED;
    }
    if (from->size > profile_compressed_most(job.written) ||
        (job.pages + 1) * MEMTRACE_PAGE_SIZE > budget_honest(BUDGET_PROFILE, job.written)) {
        return COMPRESS_SMALL;
    }
    header->version |= MEMTRACE_FORMAT_COMPRESSED;
    header->stored_bytes = job.written;
    header->whole_bytes = from->size;
    return fullwrite_at(to, header, sizeof *header, 0) == 0 ? COMPRESS_DONE : COMPRESS_FAILED;
}

int compress_store(const struct compress_source *from, int to) {
    return ftruncate(to, 0) == 0 ? fullwrite_at(to, from->bytes, from->size, 0) : -1;
}

int compress_or_store(const struct compress_source *from, int level, int to) {
    enum compress_status status = compress_profile(from, level, to);
    if (status == COMPRESS_SMALL) {
        return compress_store(from, to);
    }
    return status == COMPRESS_DONE ? 0 : -1;
}
