/* SPDX-License-Identifier: MIT */
/*
 * grown.h: puts blocks behind others that unpack to far more than they take in a file: of bytes
 * that are alike, which zstd makes almost nothing of.
 *
 * Included by what makes files for the tests of readers. Ends by abort() if memory is out.
 */
#ifndef TESTS_FUZZ_GROWN_H
#define TESTS_FUZZ_GROWN_H

#include "analyze/read/varint.h"
#include "memtrace/format.h"
#include "tests/unit/recording_builder.h"

enum { GROWN_MOST = 56 << 20, GROWN_EVENTS = 1 << 22 }; /* bytes of a block; events of a file */

static inline unsigned char *grown_bytes(void) {
    unsigned char *bytes = calloc(1, GROWN_MOST + 4096);
    if (bytes == NULL) {
        abort();
    }
    return bytes;
}

/* Columns in a row: the first `filled` of them have `size` bytes, all alike, the others one. */
static inline size_t grown_columns(unsigned char *to, size_t count, size_t size,
                                   const unsigned char *fill, size_t filled, uint64_t form) {
    unsigned char *at = to + count * sizeof(uint32_t);
    for (size_t i = 0; i < count; i++) {
        uint32_t bytes = (uint32_t)(i < filled ? size : 1);
        memcpy(to + i * sizeof bytes, &bytes, sizeof bytes);
        memset(at, i < filled ? fill[i] : (int)(form >> i & 0x7f), bytes);
        at += bytes;
    }
    return (size_t)(at - to);
}

static inline size_t grown_item(uint16_t kind) {
    switch (kind) {
    case MEMTRACE_BLOCK_THREADS:
        return sizeof(struct memtrace_thread_record);
    case MEMTRACE_BLOCK_MODULES:
        return sizeof(struct memtrace_module);
    case MEMTRACE_BLOCK_POOLS:
        return sizeof(struct memtrace_recording_pool);
    case MEMTRACE_BLOCK_SAMPLES:
        return sizeof(struct memtrace_sample);
    case MEMTRACE_BLOCK_SMAPS:
        return sizeof(struct memtrace_mapping);
    case MEMTRACE_BLOCK_CULLED:
        return sizeof(struct memtrace_culled);
    case MEMTRACE_BLOCK_NAMES:
        return sizeof(struct memtrace_frame_name);
    case MEMTRACE_BLOCK_GAP:
        return sizeof(struct memtrace_gap);
    case MEMTRACE_BLOCK_THINNED:
        return sizeof(struct memtrace_thinned);
    default:
        return 1;
    }
}

/* The bytes of `items` things of a kind, in the block of this number. */
static inline size_t grown_payload(unsigned char *bytes, uint16_t kind, size_t items,
                                   uint64_t number, uint64_t form) {
    static const unsigned char chain[] = {2, 0, 0}; /* of nodes: each the next one's parent */
    static const unsigned char flat[] = {2, 1, 0};  /* each another child of the same */
    static const unsigned char known[] = {0x01};    /* of events: allocations of one site */
    struct memtrace_embedded *file = (void *)bytes;
    size_t size = items * grown_item(kind);
    size_t made;
    switch (kind) {
    case MEMTRACE_BLOCK_NODES:
        return grown_columns(bytes, 4, items, form % 2 == 0 ? chain : flat, 3, form);
    case MEMTRACE_BLOCK_EVENTS:
        made = grown_columns(bytes, 13, items, known, 1, form);
        bytes[13 * sizeof(uint32_t)] = 0x09; /* a new site first */
        return made;
    case MEMTRACE_BLOCK_FILE:
        *file = (struct memtrace_embedded){.module = 1,
                                           .what = MEMTRACE_EMBEDDED_WHOLE,
                                           .offset = number * size,
                                           .size = UINT64_C(1) << (20 + form % 40),
                                           .build_id = {0x11},
                                           .build_id_size = 20,
                                           .path_size = sizeof "/x"};
        memcpy(file + 1, "/x", sizeof "/x");
        return sizeof *file + sizeof "/x" + size;
    default:
        for (size_t at = 0; form % 2 == 0 && grown_item(kind) > 1 && at + sizeof(uint64_t) <= size;
             at += grown_item(kind)) {
            uint64_t place = at; /* each another id, start and so on */
            memcpy(bytes + at, &place, sizeof place);
        }
        return size;
    }
}

/* So many blocks of so many items each. The form: which of several ways. */
static inline void grown_recording(struct recording_build *build, uint16_t kind, size_t items,
                                   size_t times, uint64_t form) {
    unsigned char *bytes = grown_bytes();
    for (size_t i = 0; i < times && build->count + 1 < BUILD_BLOCKS; i++) {
        size_t size = grown_payload(bytes, kind, items, i, form);
        recording_build_block(build,
                              (struct memtrace_block_header){.kind = kind,
                                                             .items = (uint32_t)items,
                                                             .stream = 1000,
                                                             .thread = 2,
                                                             .first_sequence = (uint32_t)i,
                                                             .end_sequence = (uint32_t)i + 1,
                                                             .first_ns = 1000 + i,
                                                             .last_ns = 1000 + i,
                                                             .first_number = 1 + i * items,
                                                             .allocs = (uint32_t)items},
                              bytes, size);
    }
    free(bytes);
}

/* Behind what is in the profile: blocks of so many pages, which are segments of a kind, or zeros
 * (0). */
static inline void grown_profile(struct recording_build *build, uint64_t first_page, size_t pages,
                                 size_t times, uint64_t kind) {
    struct varint_writer pieces = {0};
    const struct memtrace_segment segment = {.magic = MEMTRACE_SEGMENT_MAGIC,
                                             .kind = (uint16_t)kind,
                                             .header_size = sizeof segment,
                                             .size = MEMTRACE_PAGE_SIZE,
                                             .item_size = 56,
                                             .item_count = 73};
    unsigned char *bytes = grown_bytes();
    for (size_t i = 0; i < times && build->count + 1 < BUILD_BLOCKS; i++) {
        uint32_t sizes[19] = {[0] = 1, [3] = (uint32_t)(pages * MEMTRACE_PAGE_SIZE)};
        unsigned char *at = bytes + sizeof sizes + 1;
        pieces.size = 0;
        varint_put(&pieces, first_page + i * pages);
        varint_put(&pieces, pages);
        sizes[1] = (uint32_t)pieces.size;
        memcpy(bytes, sizes, sizeof sizes);
        memcpy(at, pieces.bytes, pieces.size);
        at += pieces.size;
        for (size_t page = 0; page < pages; page++, at += MEMTRACE_PAGE_SIZE) {
            memset(at, kind != 0 ? 1 : 0, MEMTRACE_PAGE_SIZE);
            memcpy(at, &segment, kind != 0 ? sizeof segment : 0);
        }
        recording_build_block(build,
                              (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_SEGMENTS},
                              bytes, (size_t)(at - bytes));
    }
    free(pieces.bytes);
    free(bytes);
}

/* More pages of zeros, and as large as a profile of so many stored bytes may say that it is. */
static inline void grown_header(struct recording_build *build, size_t more) {
    struct memtrace_header *header;
    static const char zeros[4096];
    for (; more > 0; more--) {
        recording_build_append(build, zeros, sizeof zeros);
    }
    header = (void *)build->bytes;
    header->stored_bytes = build->size;
    header->end = header->whole_bytes = (UINT64_C(64) << 20) + (build->size << 11);
}

#endif
