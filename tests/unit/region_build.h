/* SPDX-License-Identifier: MIT */
/*
 * region_build.h: profile regions with event buffers in a file, and a writer that fills the buffers
 * as a program's thread does, so that a collector is tested without a runtime.
 *
 * Included by unit tests. Ends the test by abort() if something cannot be had.
 */
#ifndef TESTS_UNIT_REGION_BUILD_H
#define TESTS_UNIT_REGION_BUILD_H

#include "analyze/read/event.h"
#include "analyze/read/region.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REGION_SEGMENT_BYTES = MEMTRACE_CHUNKS_PER_SEGMENT * MEMTRACE_CHUNK_BYTES,
    REGION_TREE_BYTES = MEMTRACE_LEAF_ITEMS * (int)sizeof(struct memtrace_node),
    REGION_MOST_SEGMENTS = 4,
};

struct region_build {
    char folder[64];
    char path[128];
    char output[128]; /* of the recording */
    unsigned char *bytes;
    size_t size;
    struct memtrace_header *header;
    struct memtrace_recording *recording;
    struct memtrace_chunk *segments[REGION_MOST_SEGMENTS];
};

static inline void region_build_segment(struct region_build *build, uint32_t kind, uint32_t index,
                                        uint32_t item_size, uint32_t item_count) {
    struct memtrace_segment *segment = (void *)(build->bytes + build->header->end);
    *segment = (struct memtrace_segment){.magic = MEMTRACE_SEGMENT_MAGIC,
                                         .kind = (uint16_t)kind,
                                         .header_size = sizeof *segment,
                                         .index = index,
                                         .size = (uint64_t)item_size * item_count,
                                         .item_size = item_size,
                                         .item_count = item_count};
    build->header->end += segment->size;
}

/* Contexts 4 to 1023, each the child of the one before. */
static inline void region_build_tree(struct region_build *build) {
    struct memtrace_node *nodes = (void *)(build->bytes + build->header->end);
    region_build_segment(build, MEMTRACE_SEGMENT_TREE, 0, sizeof *nodes, MEMTRACE_LEAF_ITEMS);
    for (uint32_t id = MEMTRACE_FIRST_CONTEXT; id < MEMTRACE_LEAF_ITEMS; id++) {
        nodes[id] = (struct memtrace_node){.frame = 0x400000 + id * 16,
                                           .parent = id == MEMTRACE_FIRST_CONTEXT ? 0 : id - 1};
    }
}

/* Of this process, so that it counts as alive; `segments` of buffers, all free. */
static inline struct region_build *region_build_new(unsigned segments, uint32_t flags) {
    struct region_build *build = calloc(1, sizeof *build);
    const char *folder = getenv("TMPDIR");
    uint64_t ticks = 0;
    int fd;
    if (build == NULL || region_start_ticks(getpid(), &ticks) != 0) {
        abort();
    }
    snprintf(build->folder, sizeof build->folder, "%s/memtrace-record-XXXXXX",
             folder != NULL && strlen(folder) < 40 ? folder : "/tmp");
    if (mkdtemp(build->folder) == NULL) {
        abort();
    }
    snprintf(build->path, sizeof build->path, "%s/%ld.%llu.mtp", build->folder, (long)getpid(),
             (unsigned long long)ticks);
    snprintf(build->output, sizeof build->output, "%s/out.mtr", build->folder);
    build->size =
        MEMTRACE_HEADER_SIZE + REGION_TREE_BYTES + (size_t)segments * REGION_SEGMENT_BYTES;
    fd = open(build->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)build->size) != 0) {
        abort();
    }
    build->bytes = mmap(NULL, build->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (build->bytes == MAP_FAILED) {
        abort();
    }
    build->header = (void *)build->bytes;
    build->recording = (void *)(build->bytes + MEMTRACE_RECORDING_OFFSET);
    memcpy(build->header->magic, MEMTRACE_MAGIC, 8);
    build->header->version = MEMTRACE_FORMAT_VERSION;
    build->header->header_size = MEMTRACE_HEADER_SIZE;
    build->header->byte_order = MEMTRACE_BYTE_ORDER;
    build->header->state = MEMTRACE_STATE_RUNNING;
    build->header->pid = (uint32_t)getpid();
    build->header->process_start_ticks = ticks;
    build->header->start_monotonic_ns = 1;
    build->header->end = MEMTRACE_HEADER_SIZE;
    build->recording->state = MEMTRACE_RECORD_WANTED;
    build->recording->flags = flags;
    strcpy(build->recording->path, build->output);
    region_build_tree(build);
    for (unsigned i = 0; i < segments; i++) {
        build->segments[i] = (void *)(build->bytes + build->header->end);
        region_build_segment(build, MEMTRACE_SEGMENT_EVENTS, i, MEMTRACE_CHUNK_BYTES,
                             MEMTRACE_CHUNKS_PER_SEGMENT);
        build->recording->free_chunks[i / 2] |= (UINT64_C(0xfffffffe)) << i % 2 * 32;
    }
    return build;
}

static inline void region_build_free(struct region_build *build) {
    char command[128];
    munmap(build->bytes, build->size);
    snprintf(command, sizeof command, "rm -rf %s", build->folder);
    if (system(command) != 0) {
        abort();
    }
    free(build);
}

/* --- a thread that records -------------------------------------------------------------------- */

struct region_writer {
    struct region_build *build;
    struct memtrace_chunk *chunk; /* NULL: none yet */
    uint32_t stream;
    uint32_t thread;
    uint32_t sequence; /* of the next chunk */
    uint64_t number;   /* of the next allocation */
    uint64_t time_ns;
};

static inline struct region_writer region_writer_start(struct region_build *build,
                                                       uint32_t thread) {
    return (struct region_writer){
        .build = build,
        .stream = __atomic_add_fetch(&build->recording->stream_count, 1, __ATOMIC_RELAXED),
        .thread = thread,
        .number = 1};
}

/* Takes a free chunk; waits until there is one. */
static inline struct memtrace_chunk *region_claim(struct region_build *build) {
    for (;;) {
        for (uint32_t word = 0; word < REGION_MOST_SEGMENTS / 2; word++) {
            uint64_t *free_bits = &build->recording->free_chunks[word];
            uint64_t seen = __atomic_load_n(free_bits, __ATOMIC_ACQUIRE);
            uint64_t bit = seen & -seen;
            if (bit != 0 && (__atomic_fetch_and(free_bits, ~bit, __ATOMIC_ACQUIRE) & bit) != 0) {
                uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bit);
                return build->segments[number / 32] + number % 32;
            }
        }
        usleep(100);
    }
}

/* Leaves the chunk to the collector. */
static inline void region_leave(struct region_writer *writer) {
    if (writer->chunk != NULL) {
        __atomic_store_n(&writer->chunk->state, MEMTRACE_CHUNK_FULL, __ATOMIC_RELEASE);
        writer->chunk = NULL;
    }
}

static inline void region_next_chunk(struct region_writer *writer) {
    region_leave(writer);
    writer->chunk = region_claim(writer->build);
    writer->chunk->stream = writer->stream;
    writer->chunk->thread = writer->thread;
    writer->chunk->sequence = writer->sequence++;
    writer->chunk->first_number = writer->number;
    writer->chunk->start_ns = writer->time_ns;
    writer->chunk->used = 0;
    writer->chunk->drained = 0;
    __atomic_store_n(&writer->chunk->state, MEMTRACE_CHUNK_OPEN, __ATOMIC_RELEASE);
}

static inline void region_put(struct region_writer *writer, const uint64_t *words, uint32_t count) {
    if (writer->chunk == NULL || writer->chunk->used + count > MEMTRACE_CHUNK_WORDS) {
        region_next_chunk(writer);
    }
    memcpy(writer->chunk->word + writer->chunk->used, words, count * sizeof *words);
    __atomic_store_n(&writer->chunk->used, writer->chunk->used + count, __ATOMIC_RELEASE);
}

static inline uint64_t region_block_word(uint64_t kind, struct event_block block) {
    return kind | (uint64_t)block.thread << 4 | block.number << 16;
}

static inline uint32_t region_alloc_words(const struct event *event, uint64_t *words) {
    uint32_t count = 0;
    if (event->weight != 0) {
        words[count++] = MEMTRACE_WORD_WEIGHT | event->weight << 4;
    }
    if (event->alignment != 0 || event->size >> 36 != 0) {
        words[count++] =
            MEMTRACE_WORD_EXTRA | (uint64_t)event->alignment << 4 | event->size >> 36 << 10;
    }
    if (event->old.number != 0) {
        words[count++] = region_block_word(MEMTRACE_WORD_REALLOC, event->old);
    }
    words[count++] = MEMTRACE_WORD_ALLOC | (uint64_t)event->context << 4 | event->size << 28;
    words[count++] = event->address | (uint64_t)event->slack << 48 | (uint64_t)event->flags << 60;
    return count;
}

static inline uint32_t region_free_words(const struct event *event, uint64_t *words) {
    words[0] = region_block_word(event->context != 0 ? MEMTRACE_WORD_FREE_AT : MEMTRACE_WORD_FREE,
                                 event->block);
    words[1] = event->context;
    return event->context != 0 ? 2 : 1;
}

static inline uint32_t region_map_words(const struct event *event, uint64_t *words) {
    words[0] = MEMTRACE_WORD_MAP | (uint64_t)event->operation << 4 |
               (uint64_t)event->protection << 8 | (uint64_t)event->flags << 16 |
               (uint64_t)event->context << 24;
    words[1] = event->address;
    words[2] = event->size;
    words[3] = event->old_address;
    words[4] = event->old_size;
    return 5;
}

static inline uint32_t region_mark_words(const struct event *event, uint64_t *words) {
    uint32_t count = 1 + (event->text_size + 7) / 8;
    memset(words, 0, count * sizeof *words);
    words[0] = MEMTRACE_WORD_MARK | (uint64_t)event->operation << 4 |
               (uint64_t)event->text_size << 8 | event->id << 24;
    if (event->text_size != 0) {
        memcpy(words + 1, event->text, event->text_size);
    }
    return count;
}

static inline uint32_t region_event_words(const struct event *event, uint64_t *words) {
    switch (event->kind) {
    case EVENT_ALLOC:
        return region_alloc_words(event, words);
    case EVENT_FREE:
        return region_free_words(event, words);
    case EVENT_MAP:
        return region_map_words(event, words);
    case EVENT_MARK:
        return region_mark_words(event, words);
    default:
        words[0] = MEMTRACE_WORD_LOST | event->lost_allocs << 4 | event->lost_frees << 34;
        return 1;
    }
}

static inline void region_write(struct region_writer *writer, const struct event *event) {
    uint64_t words[32];
    if (event->time_ns != writer->time_ns) {
        words[0] = MEMTRACE_WORD_TIME | event->time_ns << 4;
        region_put(writer, words, 1);
        writer->time_ns = event->time_ns;
    }
    if (event->kind == EVENT_ALLOC && event->block.number != writer->number) {
        words[0] = MEMTRACE_WORD_NUMBERS | event->block.number << 4;
        region_put(writer, words, 1);
        writer->number = event->block.number;
    }
    region_put(writer, words, region_event_words(event, words));
    writer->number += event->kind == EVENT_ALLOC;
}

#endif
