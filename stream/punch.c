/* SPDX-License-Identifier: MIT */
/*
 * punch.c: see punch.h. The order makes it safe to be killed at any place: a page is written by one
 * call within one page of memory, where bytes stand that are free already, or, the first one, that
 * it speaks of itself. It is on the disk before what it tells of is freed.
 */
#include "stream/punch.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    LEAST = 1 << 16,           /* less is not worth it */
    MUCH = 1 << 20,            /* is freed at once; less than this, but more than the least: */
    PAGE = MEMTRACE_SENT_PAGE, /* as an int */
    ENTRIES_MOST = 2048,       /* of a page; more never fit */
    PACK_LEVEL = 3,
};
#define REST_NS UINT64_C(500000000) /* ... after so long */

void punch_name(struct punch *punch, const char *to) {
    snprintf(punch->to, sizeof punch->to, "%.*s", (int)sizeof punch->to - 1, to);
}

int punch_open(struct punch *punch, int fd) {
    struct sent *sent = &punch->sent;
    *punch = (struct punch){.fd = fd};
    if (sent_read(sent, fd) != 0) {
        return -1;
    }
    /* Earlier pages stay as they are. */
    if (sent->count != 0) {
        memmove(sent->entries, sent->entries + (sent->count - sent->last_count),
                sent->last_count * sizeof *sent->entries);
        sent->count = sent->last_count;
    }
    punch->noted = sent->last.end != 0 ? sent->last.end : sizeof(struct memtrace_recording_header);
    punch->hash = (struct filehash){.done = sent->last.hashed, .hash = sent->last.hash};
    return 0;
}

void punch_close(struct punch *punch) {
    sent_free(&punch->sent);
}

int punch_note(struct punch *punch, uint64_t offset, const struct memtrace_block_header *block) {
    struct sent *sent = &punch->sent;
    if (offset < punch->noted) {
        return 0;
    }
    if (array_grow(&sent->entries, &sent->room, sent->count, sizeof *sent->entries) != 0) {
        errno = ENOMEM;
        return -1;
    }
    sent->entries[sent->count++] = (struct memtrace_index_entry){offset, *block};
    punch->noted = offset + block_size(block);
    return 0;
}

static uint64_t punch_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* ---- Pages ---- */

/* A page's bytes, with so many entries, the first ones. false: they do not fit. */
static bool pack_page(const struct sent *sent, struct memtrace_sent *head, size_t count,
                      unsigned char page[PAGE]) {
    struct memtrace_block_header block = {.magic = MEMTRACE_BLOCK_MAGIC,
                                          .kind = MEMTRACE_BLOCK_SENT,
                                          .header_size = sizeof block,
                                          .items = (uint32_t)count};
    size_t bytes = count * sizeof *sent->entries;
    size_t size = sizeof *head + bytes;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    unsigned char *raw = malloc(size + BLOCK_PACK_BOUND(size));
    unsigned char *packed = raw + size;
    size_t stored = 0;
    if (zstd != NULL && raw != NULL) {
        head->end = sent->entries[count - 1].offset + block_size(&sent->entries[count - 1].block);
        memcpy(raw, head, sizeof *head);
        memcpy(raw + sizeof *head, sent->entries, bytes);
        stored = block_pack(zstd, MEMTRACE_BLOCK_SENT, raw, size, PACK_LEVEL, packed);
        if (stored == 0 || stored >= size) {
            packed = raw;
            stored = size;
        }
    }
    bool fits = stored != 0 && stored <= PAGE - sizeof block;
    if (fits) {
        block.stored_size = (uint32_t)stored;
        block.raw_size = (uint32_t)size;
        block.checksum = block_checksum(&block, packed);
        memset(page, 0, PAGE);
        memcpy(page, &block, sizeof block);
        memcpy(page + sizeof block, packed, stored);
    }
    free(raw);
    ZSTD_freeCCtx(zstd);
    return fits;
}

/* One page with as many of the first `count` entries as fit, which are more than it has. 1; 0: it
 * takes no more; -1: errno. */
static int extend_page(struct punch *punch, int fd, size_t count) {
    struct sent *sent = &punch->sent;
    struct memtrace_sent head = {
        .page = sent->last.page, .hashed = punch->hash.done, .hash = punch->hash.hash};
    unsigned char page[PAGE];
    count = count < ENTRIES_MOST ? count : ENTRIES_MOST;
    snprintf(head.to, sizeof head.to, "%s", punch->to);
    while (count > sent->last_count && !pack_page(sent, &head, count, page)) {
        count = sent->last_count + (count - sent->last_count) / 2;
    }
    /* The page itself is to lie where nothing is needed any more. */
    uint64_t place = sent->first_page + head.page * PAGE;
    if (count <= sent->last_count || place + PAGE > punch_least(head.hashed, head.end)) {
        return 0;
    }
    ssize_t written = pwrite(fd, page, PAGE, (off_t)place);
    if (written != PAGE) {
        errno = written < 0 ? errno : ENOSPC;
        return -1;
    }
    sent->last = head;
    sent->last_count = count;
    return 1;
}

/* ---- Freeing ---- */

/* How many of the entries are of blocks that are there as a whole. */
static size_t count_there(const struct sent *sent, uint64_t acked) {
    size_t count = sent->last_count;
    while (count < sent->count &&
           sent->entries[count].offset + block_size(&sent->entries[count].block) <= acked) {
        count++;
    }
    return count;
}

/* Tells of as many blocks as are there. 1: of some that no page told of; 0: of none; -1: errno. */
static int punch_tell(struct punch *punch, int fd, uint64_t acked) {
    struct sent *sent = &punch->sent;
    int told = 0;
    int result = 1;
    while (result > 0) {
        size_t count = count_there(sent, acked);
        if (count == sent->last_count) {
            break;
        }
        result = extend_page(punch, fd, count);
        if (result == 0 && sent->last_count != 0) {
            /* The next page: the entries of a full one are not needed any more. */
            memmove(sent->entries, sent->entries + sent->last_count,
                    (sent->count - sent->last_count) * sizeof *sent->entries);
            sent->count -= sent->last_count;
            sent->last_count = 0;
            sent->last.page++;
            result = extend_page(punch, fd, count_there(sent, acked));
        }
        told |= result > 0;
    }
    return result < 0 ? -1 : told;
}

/* With the file open for writing, and no recorder that is just going on with it. */
static int punch_free_in(struct punch *punch, int fd, uint64_t acked) {
    const struct sent *sent = &punch->sent;
    uint64_t from;
    uint64_t to;
    int told;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK ? 0 : -1;
    }
    told = punch_tell(punch, fd, acked);
    from = sent->first_page + (sent->last.page + (sent->last_count != 0)) * PAGE;
    from = from > punch->freed ? from : punch->freed;
    to = punch_least(sent->last.end, sent->last.hashed) / PAGE * PAGE;
    if (told <= 0 || from >= to) {
        return told < 0 ? -1 : 0;
    }
    if (fdatasync(fd) != 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                                        (off_t)(to - from)) != 0) {
        return -1;
    }
    punch->freed = to;
    return 0;
}

int punch_free(struct punch *punch, uint64_t acked, uint64_t now_ns, struct error *error) {
    char path[32];
    uint64_t told = punch->sent.last.end;
    if (acked < told + LEAST || (acked < told + MUCH && now_ns < punch->at_ns + REST_NS)) {
        return 0;
    }
    punch->at_ns = now_ns;
    punch->sent.first_page =
        punch->sent.first_page != 0 ? punch->sent.first_page : sent_first_page(punch->fd);
    if (acked > punch->hash.done + FILEHASH_PIECE) {
        filehash_start(&punch->hash, punch->fd, acked / FILEHASH_PIECE * FILEHASH_PIECE);
        if (filehash_step(&punch->hash) < 0) {
            return error_set(error, "cannot read what was sent: %s", strerror(errno));
        }
    }
    /* Not open for longer than that: whoever asks whether somebody writes means the recorder. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", punch->fd);
    SCOPE_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 && punch_free_in(punch, fd, acked) == 0
               ? 0
               : error_set(error, "cannot free what was sent: %s", strerror(errno));
}
