/* SPDX-License-Identifier: MIT */
/*
 * profile_builder.h: writes small profiles in memory, so that readers are tested without a runtime.
 *
 * Included by unit tests. Fails the test by abort() if the profile grows past BUILDER_CAPACITY.
 */
#ifndef TESTS_UNIT_PROFILE_BUILDER_H
#define TESTS_UNIT_PROFILE_BUILDER_H

#include "memtrace/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUILDER_CAPACITY = 1 << 20 };

struct builder {
    _Alignas(8) unsigned char bytes[BUILDER_CAPACITY];
};

static inline struct memtrace_header *builder_header(struct builder *builder) {
    return (struct memtrace_header *)builder->bytes;
}

static inline size_t builder_size(const struct builder *builder) {
    return ((const struct memtrace_header *)builder->bytes)->end;
}

static inline struct builder *builder_new(void) {
    struct builder *builder = aligned_alloc(64, sizeof *builder);
    struct memtrace_header *header;
    if (builder == NULL) {
        abort();
    }
    memset(builder, 0, sizeof *builder);
    header = builder_header(builder);
    memcpy(header->magic, MEMTRACE_MAGIC, 8);
    header->version = MEMTRACE_FORMAT_VERSION;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    header->machine = 62;
    header->end = MEMTRACE_HEADER_SIZE;
    header->state = MEMTRACE_STATE_ENDED;
    header->stacks = MEMTRACE_STACKS_FULL;
    header->pid = 4242;
    header->peak_epoch = 1;
    header->start_monotonic_ns = 1000;
    header->end_monotonic_ns = 2500001000;
    strcpy(header->executable, "/usr/bin/example");
    memcpy(header->command, "example\0--fast\0", 16);
    return builder;
}

static inline void *builder_segment(struct builder *builder, uint32_t kind, uint32_t owner,
                                    uint32_t index, uint32_t item_size, uint32_t item_count) {
    struct memtrace_header *header = builder_header(builder);
    uint64_t size = ((uint64_t)item_size * item_count + 4095) & ~UINT64_C(4095);
    struct memtrace_segment *segment = (void *)(builder->bytes + header->end);
    if (header->end + size > sizeof builder->bytes) {
        abort();
    }
    *segment = (struct memtrace_segment){.magic = MEMTRACE_SEGMENT_MAGIC,
                                         .kind = (uint16_t)kind,
                                         .header_size = sizeof *segment,
                                         .owner = owner,
                                         .index = index,
                                         .size = size,
                                         .item_size = item_size,
                                         .item_count = item_count};
    header->end += size;
    return segment;
}

/* Tables of the usual sizes, each an array of items by index. */
static inline struct memtrace_node *builder_tree(struct builder *builder, uint32_t index) {
    return builder_segment(builder, MEMTRACE_SEGMENT_TREE, 0, index, sizeof(struct memtrace_node),
                           MEMTRACE_LEAF_ITEMS);
}
static inline struct memtrace_cell *builder_ledger(struct builder *builder, uint32_t column,
                                                   uint32_t index) {
    return builder_segment(builder, MEMTRACE_SEGMENT_LEDGER, column, index,
                           sizeof(struct memtrace_cell), MEMTRACE_LEAF_ITEMS);
}
static inline struct memtrace_lifetimes *builder_lifetimes(struct builder *builder) {
    return builder_segment(builder, MEMTRACE_SEGMENT_LIFETIMES, 0, 0,
                           sizeof(struct memtrace_lifetimes), MEMTRACE_LEAF_ITEMS);
}
static inline struct memtrace_thread_record *builder_threads(struct builder *builder) {
    return builder_segment(builder, MEMTRACE_SEGMENT_THREADS, 0, 0,
                           sizeof(struct memtrace_thread_record), 32);
}
static inline struct memtrace_module *builder_modules(struct builder *builder) {
    return builder_segment(builder, MEMTRACE_SEGMENT_MODULES, 0, 0, sizeof(struct memtrace_module),
                           8);
}
static inline struct memtrace_pool *builder_pools(struct builder *builder) {
    return builder_segment(builder, MEMTRACE_SEGMENT_POOLS, 0, 0, sizeof(struct memtrace_pool), 16);
}
static inline struct memtrace_timeline *builder_timeline(struct builder *builder) {
    return builder_segment(builder, MEMTRACE_SEGMENT_TIMELINE, 0, 0,
                           sizeof(struct memtrace_timeline), 1);
}
static inline struct memtrace_foreign_frees *builder_frees(struct builder *builder,
                                                           uint32_t thread) {
    return builder_segment(builder, MEMTRACE_SEGMENT_FREES, thread, 0,
                           sizeof(struct memtrace_foreign_frees), 260);
}

static inline uint64_t builder_frame(uint32_t module, uint64_t address) {
    return (uint64_t)module << MEMTRACE_FRAME_MODULE_SHIFT | address;
}

static inline void builder_set_module(struct memtrace_module *modules, uint32_t id, uint64_t bias,
                                      const char *path) {
    modules[id].id = id;
    modules[id].start = bias;
    modules[id].end = bias + 0x100000;
    modules[id].bias = bias;
    modules[id].build_id_size = 20;
    memset(modules[id].build_id, (int)(0x10 + id), 20);
    snprintf(modules[id].path, sizeof modules[id].path, "%s", path);
}

/*
 * A small whole profile, load address `bias`:
 *   10 main -> 11 parse -> 12 malloc caller in parse (heap: 5 blocks of 100, 2 freed)
 *           -> 13 in main (heap: 1 block of 50, freed)      -> 14 recursion parse -> 15 parse
 *   16 parse under mmap (class), 17 pool 3 "arena" under main
 * Columns 1 and 2; thread 2 freed one block of 100 of thread 1.
 */
static inline void builder_example(struct builder *builder, uint64_t bias) {
    struct memtrace_module *modules = builder_modules(builder);
    struct memtrace_node *tree = builder_tree(builder, 0);
    struct memtrace_cell *first = builder_ledger(builder, 1, 0);
    struct memtrace_cell *second = builder_ledger(builder, 2, 0);
    struct memtrace_lifetimes *lifetimes = builder_lifetimes(builder);
    struct memtrace_thread_record *threads = builder_threads(builder);
    struct memtrace_pool *pools = builder_pools(builder);
    struct memtrace_timeline *timeline = builder_timeline(builder);
    struct memtrace_foreign_frees *frees = builder_frees(builder, 2);

    builder_set_module(modules, 1, bias, "/usr/bin/example");
    builder_set_module(modules, 2, bias + 0x1000000, "/usr/lib/libother.so.1");
    tree[10] = (struct memtrace_node){builder_frame(1, bias + 0x1010), 0, 0};
    tree[11] = (struct memtrace_node){builder_frame(1, bias + 0x2020), 10, 0};
    tree[12] = (struct memtrace_node){builder_frame(2, bias + 0x1003030), 11, 0};
    tree[13] = (struct memtrace_node){builder_frame(2, bias + 0x1003030), 10, 0};
    tree[14] = (struct memtrace_node){builder_frame(1, bias + 0x2020), 11, 0};
    tree[15] = (struct memtrace_node){builder_frame(2, bias + 0x1003030), 14, 0};
    tree[16] = (struct memtrace_node){MEMTRACE_FRAME_MAPPING, 12, 0};
    tree[17] = (struct memtrace_node){MEMTRACE_FRAME_POOL + 3, 10, 0};

    first[12] = (struct memtrace_cell){500, 5, 100, 1, 1, 0, 0, 1};
    second[12] = (struct memtrace_cell){0, 0, 100, 1, 0, 0, 0, MEMTRACE_LIFETIME_SINGLE | 3};
    lifetimes[1].bucket[0] = 1;
    first[13] = (struct memtrace_cell){50, 1, 50, 1, 0, 0, 0, MEMTRACE_LIFETIME_SINGLE | 1};
    first[15] = (struct memtrace_cell){1000, 2, 0, 0, 0, 0, 0, 0};
    first[16] = (struct memtrace_cell){4096, 1, 0, 0, 0, 0, 0, 0};
    first[17] = (struct memtrace_cell){64, 2, 32, 1, 0, 0, 0, 0};

    threads[1] = (struct memtrace_thread_record){.id = 1,
                                                 .tid = 4242,
                                                 .state = MEMTRACE_THREAD_ALIVE,
                                                 .counts = {8, 1550, 2, 150},
                                                 .name = "main"};
    threads[2] = (struct memtrace_thread_record){.id = 2,
                                                 .tid = 4243,
                                                 .state = MEMTRACE_THREAD_ENDED,
                                                 .end_ns = 5,
                                                 .counts = {.free_count = 1, .free_bytes = 100},
                                                 .foreign_free_count = 1,
                                                 .foreign_free_bytes = 100,
                                                 .name = "worker \"2\""};
    frees[256 + 1] = (struct memtrace_foreign_frees){1, 100};
    strcpy(pools[3].name, "arena");
    timeline->count = 3;
    timeline->point[0] = (struct memtrace_point){10, 100, 5000, 1, 100};
    timeline->point[1] = (struct memtrace_point){30, 300, 7000, 3, 300};
    timeline->point[2] = (struct memtrace_point){20, 200, 6000, 2, 200};
    builder_header(builder)->thread_count = 3;
    builder_header(builder)->module_count = 3;
    builder_header(builder)->pool_count = 4;
    builder_header(builder)->context_count = 8;
}

#endif
