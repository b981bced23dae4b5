/* SPDX-License-Identifier: MIT */
/*
 * recording_builder.h: writes small recordings in memory, so that readers are tested without a
 * collector.
 *
 * Included by unit tests and by what makes a corpus for the fuzz targets. Ends the test by abort()
 * if memory is out.
 */
#ifndef TESTS_UNIT_RECORDING_BUILDER_H
#define TESTS_UNIT_RECORDING_BUILDER_H

#include "analyze/read/block.h"
#include "analyze/read/eventcode.h"
#include "analyze/read/nodecode.h"
#include "tests/unit/event_stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { BUILD_BLOCKS = 256 };

/* Start from {0} and recording_build_header(). */
struct recording_build {
    unsigned char *bytes;
    size_t size;
    struct memtrace_index_entry entries[BUILD_BLOCKS];
    size_t count;
    bool raw;           /* blocks are stored as they are */
    uint64_t inherited; /* blocks that the program, a forked child, was born with */
};

static inline void recording_build_free(struct recording_build *build) {
    free(build->bytes);
    *build = (struct recording_build){0};
}

static inline void recording_build_append(struct recording_build *build, const void *bytes,
                                          size_t size) {
    build->bytes = realloc(build->bytes, build->size + size + 1);
    if (build->bytes == NULL) {
        abort();
    }
    memcpy(build->bytes + build->size, bytes, size);
    build->size += size;
}

static inline void recording_build_header(struct recording_build *build) {
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER,
                                               .pid = 1 << 30, /* no process has it */
                                               .process_start_ticks = 1};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, 8);
    recording_build_append(build, &header, sizeof header);
}

/* A block with this payload; *block has what is not derived from it. */
static inline void recording_build_block(struct recording_build *build,
                                         struct memtrace_block_header block, const void *payload,
                                         size_t size) {
    static const char zeros[8];
    size_t room = ZSTD_compressBound(size);
    unsigned char *packed = malloc(room);
    size_t stored;
    if (packed == NULL || build->count == BUILD_BLOCKS) {
        abort();
    }
    stored = build->raw ? size : ZSTD_compress(packed, room, payload, size, 1);
    if (stored >= size) {
        memcpy(packed, payload, size);
        stored = size;
    }
    block.magic = MEMTRACE_BLOCK_MAGIC;
    block.header_size = sizeof block;
    block.stored_size = (uint32_t)stored;
    block.raw_size = (uint32_t)size;
    block.checksum = block_checksum(&block, packed);
    build->entries[build->count++] =
        (struct memtrace_index_entry){.offset = build->size, .block = block};
    recording_build_append(build, &block, sizeof block);
    recording_build_append(build, packed, stored);
    recording_build_append(build, zeros, block_padding(&block));
    free(packed);
}

static inline void recording_build_items(struct recording_build *build, uint16_t kind,
                                         const void *items, size_t size, size_t count) {
    recording_build_block(build,
                          (struct memtrace_block_header){.kind = kind, .items = (uint32_t)count},
                          items, size * count);
}

static inline void recording_build_program(struct recording_build *build, const char *executable) {
    struct memtrace_header *program = calloc(1, sizeof *program);
    if (program == NULL) {
        abort();
    }
    memcpy(program->magic, MEMTRACE_MAGIC, 8);
    program->version = MEMTRACE_FORMAT_VERSION;
    program->header_size = MEMTRACE_HEADER_SIZE;
    program->byte_order = MEMTRACE_BYTE_ORDER;
    program->machine = 62;
    program->end = MEMTRACE_HEADER_SIZE;
    program->state = MEMTRACE_STATE_ENDED;
    program->stacks = MEMTRACE_STACKS_FULL;
    program->pid = 4242;
    program->start_monotonic_ns = 1000;
    program->end_monotonic_ns = 2500001000;
    program->inherited_blocks = build->inherited;
    snprintf(program->executable, sizeof program->executable, "%s", executable);
    memcpy(program->command, "example\0--fast\0", 16);
    recording_build_items(build, MEMTRACE_BLOCK_PROGRAM, program, sizeof *program, 1);
    free(program);
}

static inline void recording_build_nodes(struct recording_build *build,
                                         const struct memtrace_recording_node *nodes,
                                         size_t count) {
    struct varint_writer payload = {0};
    if (nodecode_pack(nodes, count, &payload) != 0) {
        abort();
    }
    recording_build_block(
        build,
        (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_NODES, .items = (uint32_t)count},
        payload.bytes, payload.size);
    free(payload.bytes);
}

/* Contexts 4 to 35 as a binary tree below 4; addresses in module 1. */
static inline void recording_build_tree(struct recording_build *build) {
    struct memtrace_recording_node nodes[32];
    for (uint32_t i = 0; i < 32; i++) {
        nodes[i] = (struct memtrace_recording_node){
            .frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (0x1000 + i % 5 * 16),
            .parent = i == 0 ? 0 : 4 + (i - 1) / 2,
            .id = 4 + i};
    }
    recording_build_nodes(build, nodes, 32);
}

/* The events since the encoder was started, as a block of this stream. */
static inline void recording_build_encoded(struct recording_build *build,
                                           struct event_encoder *encoder, uint32_t stream) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS, .stream = stream};
    size_t size;
    const void *payload = event_encoder_finish(encoder, &size, &block);
    if (payload == NULL) {
        abort();
    }
    recording_build_block(build, block, payload, size);
}

static inline void recording_build_events(struct recording_build *build, struct stream *stream,
                                          size_t count) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct event event;
    if (encoder == NULL) {
        abort();
    }
    event_encoder_start(encoder, stream->thread, stream->number + 1);
    while (count-- > 0) {
        stream_next(stream, &event);
        if (event_encoder_add(encoder, &event) != 0) {
            abort();
        }
    }
    recording_build_encoded(build, encoder, stream->thread);
    event_encoder_free(encoder);
}

static inline void recording_build_index(struct recording_build *build) {
    struct memtrace_index_end end = {.index_offset = build->size};
    memcpy(end.magic, MEMTRACE_RECORDING_MAGIC, 8);
    recording_build_items(build, MEMTRACE_BLOCK_INDEX, build->entries, sizeof build->entries[0],
                          build->count);
    recording_build_append(build, &end, sizeof end);
}

/* A small recording of two threads, without an index yet. */
static inline void recording_build_example(struct recording_build *build) {
    struct stream first = stream_start(1, 2, 1);
    struct stream second = stream_start(2, 3, 1);
    struct memtrace_thread_record threads[2] = {
        {.id = 2, .tid = 4242, .state = MEMTRACE_THREAD_ENDED, .name = "example"},
        {.id = 3, .tid = 4243, .state = MEMTRACE_THREAD_ENDED, .name = "worker"}};
    struct memtrace_sample samples[3] = {{.time_ns = 1000000, .resident_bytes = 1 << 20},
                                         {.time_ns = 2000000, .resident_bytes = 2 << 20},
                                         {.time_ns = 3000000, .resident_bytes = 1 << 20}};
    recording_build_header(build);
    recording_build_program(build, "/usr/bin/begun");
    recording_build_tree(build);
    recording_build_events(build, &first, 200);
    recording_build_events(build, &second, 100);
    recording_build_items(build, MEMTRACE_BLOCK_SAMPLES, samples, sizeof samples[0], 3);
    recording_build_events(build, &first, 50);
    recording_build_items(build, MEMTRACE_BLOCK_THREADS, threads, sizeof threads[0], 2);
    recording_build_program(build, "/usr/bin/example");
}

/* These bytes as the file at this path. */
static inline void recording_build_write(const void *bytes, size_t size, const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
        abort();
    }
    close(fd);
}

#endif
