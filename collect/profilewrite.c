/* SPDX-License-Identifier: MIT */
/* profilewrite.c: see profilewrite.h. */
#include "collect/profilewrite.h"

#include <errno.h>
#include <string.h>

static void put(struct profilewrite *write, const void *bytes, size_t size) {
    write->failed |= size != 0 && fwrite(bytes, 1, size, write->out) != size;
    write->at += size;
}

static void pad(struct profilewrite *write, uint64_t end) {
    static const char zeros[MEMTRACE_PAGE_SIZE];
    while (write->at < end) {
        uint64_t left = end - write->at;
        put(write, zeros, left < sizeof zeros ? left : sizeof zeros);
    }
}

struct profilewrite profilewrite_begin(FILE *out) {
    struct profilewrite write = {.out = out};
    pad(&write, MEMTRACE_HEADER_SIZE);
    return write;
}

/* A segment of item_count items, of which the first `given` are there and the others are zero. */
static void put_segment(struct profilewrite *write, struct memtrace_segment segment,
                        const void *items, size_t given) {
    const uint64_t page = MEMTRACE_PAGE_SIZE;
    uint64_t bytes = (uint64_t)segment.item_size * given;
    uint64_t end;
    segment.magic = MEMTRACE_SEGMENT_MAGIC;
    segment.header_size = sizeof segment;
    segment.size = ((uint64_t)segment.item_size * segment.item_count + page - 1) / page * page;
    end = write->at + segment.size;
    put(write, &segment, sizeof segment);
    if (bytes > sizeof segment) {
        put(write, (const char *)items + sizeof segment, bytes - sizeof segment);
    }
    pad(write, end);
}

void profilewrite_segment(struct profilewrite *write, enum memtrace_segment_kind kind,
                          uint32_t owner, uint32_t index, const void *items, size_t item_size,
                          size_t item_count) {
    const struct memtrace_segment segment = {.kind = (uint16_t)kind,
                                             .owner = owner,
                                             .index = index,
                                             .item_size = (uint32_t)item_size,
                                             .item_count = (uint32_t)item_count};
    if (item_size * item_count > sizeof segment) {
        put_segment(write, segment, items, item_count);
    }
}

void profilewrite_leaves(struct profilewrite *write, enum memtrace_segment_kind kind,
                         uint32_t owner, const void *items, size_t item_size, size_t item_count) {
    for (size_t first = 0; first < item_count; first += MEMTRACE_LEAF_ITEMS) {
        size_t left = item_count - first;
        const struct memtrace_segment segment = {.kind = (uint16_t)kind,
                                                 .owner = owner,
                                                 .index = (uint32_t)(first / MEMTRACE_LEAF_ITEMS),
                                                 .item_size = (uint32_t)item_size,
                                                 .item_count = MEMTRACE_LEAF_ITEMS};
        put_segment(write, segment, (const char *)items + first * item_size,
                    left < MEMTRACE_LEAF_ITEMS ? left : MEMTRACE_LEAF_ITEMS);
    }
}

int profilewrite_end(struct profilewrite *write, struct memtrace_header *header,
                     struct error *error) {
    memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
    header->version = (header->flags & MEMTRACE_FLAG_SAMPLED) != 0 ? MEMTRACE_FORMAT_SAMPLED
                                                                   : MEMTRACE_FORMAT_VERSION;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    header->end = write->at;
    if (write->failed || fseek(write->out, 0, SEEK_SET) != 0 ||
        fwrite(header, sizeof *header, 1, write->out) != 1 || fflush(write->out) != 0) {
        return error_set(error, "cannot write the profile: %s", strerror(errno));
    }
    return 0;
}
