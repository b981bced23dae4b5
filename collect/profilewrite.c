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

void profilewrite_segment(struct profilewrite *write, enum memtrace_segment_kind kind,
                          uint32_t owner, uint32_t index, const void *items, size_t item_size,
                          size_t item_count) {
    const uint64_t page = MEMTRACE_PAGE_SIZE;
    uint64_t bytes = (uint64_t)item_size * item_count;
    uint64_t size = (bytes + page - 1) / page * page;
    struct memtrace_segment segment = {.magic = MEMTRACE_SEGMENT_MAGIC,
                                       .kind = (uint16_t)kind,
                                       .header_size = sizeof segment,
                                       .owner = owner,
                                       .index = index,
                                       .size = size,
                                       .item_size = (uint32_t)item_size,
                                       .item_count = (uint32_t)item_count};
    uint64_t end = write->at + size;
    if (bytes <= sizeof segment) {
        return;
    }
    put(write, &segment, sizeof segment);
    put(write, (const char *)items + sizeof segment, bytes - sizeof segment);
    pad(write, end);
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
