/* SPDX-License-Identifier: MIT */
/* profilewrite.c: see profilewrite.h. */
#include "collect/profilewrite.h"

#include "analyze/base/job.h"
#include "analyze/read/block.h"
#include "collect/compress.h"

#include <errno.h>
#include <string.h>

/* Room for this many bytes more, all zero. */
static unsigned char *profilewrite_append(struct profilewrite *write, size_t size) {
    size_t at = write->size;
    job_reserve(&write->bytes, &write->room, at + size, sizeof *write->bytes);
    memset(write->bytes + at, 0, size);
    write->size += size;
    return write->bytes + at;
}

struct profilewrite profilewrite_begin(void) {
    struct profilewrite write = {.size = 0};
    profilewrite_append(&write, MEMTRACE_HEADER_SIZE);
    return write;
}

/* A segment of item_count items, of which the first `given` are there and the others are zero. */
static void profilewrite_put(struct profilewrite *write, struct memtrace_segment segment,
                             const void *items, size_t given) {
    const uint64_t page = MEMTRACE_PAGE_SIZE;
    uint64_t bytes = (uint64_t)segment.item_size * given;
    unsigned char *place;
    segment.magic = MEMTRACE_SEGMENT_MAGIC;
    segment.header_size = sizeof segment;
    segment.size = ((uint64_t)segment.item_size * segment.item_count + page - 1) / page * page;
    place = profilewrite_append(write, segment.size);
    memcpy(place, &segment, sizeof segment);
    if (bytes > sizeof segment) {
        memcpy(place + sizeof segment, (const char *)items + sizeof segment,
               bytes - sizeof segment);
    }
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
        profilewrite_put(write, segment, items, item_count);
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
        profilewrite_put(write, segment, (const char *)items + first * item_size,
                         left < MEMTRACE_LEAF_ITEMS ? left : MEMTRACE_LEAF_ITEMS);
    }
}

void profilewrite_end(struct profilewrite *write, struct memtrace_header *header, FILE *out) {
    const struct compress_source source = {write->bytes, -1, write->size};
    memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
    header->version = (header->flags & MEMTRACE_FLAG_SAMPLED) != 0 ? MEMTRACE_FORMAT_SAMPLED
                                                                   : MEMTRACE_FORMAT_VERSION;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    header->end = write->size;
    memcpy(write->bytes, header, sizeof *header);
    if (compress_or_store(&source, BLOCK_PACK_LEVEL, fileno(out)) != 0) {
        job_fail("cannot write the profile: %s", strerror(errno));
    }
}
