/* SPDX-License-Identifier: MIT */
/* byteorder_test.c: fields of structs that the compiler laid out, turned, are what
 * __builtin_bswap makes of them; a file turned twice is what it was. */
#include "analyze/read/byteorder.h"

#include "memtrace/events.h"
#include "memtrace/sampled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SWAP(value)                                                                                \
    (sizeof(value) == 8   ? __builtin_bswap64((uint64_t)(value))                                   \
     : sizeof(value) == 4 ? __builtin_bswap32((uint32_t)(value))                                   \
                          : __builtin_bswap16((uint16_t)(value)))
#define assert_turned(before, after, field)                                                        \
    assert_int_equal((uint64_t)(after)->field, SWAP((before)->field))

/* No two fields alike. */
static void fill(void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((unsigned char *)bytes)[i] = (unsigned char)(i * 167 + i / 251 + 13);
    }
}

static void test_header(void **state) {
    static struct memtrace_header before, after;
    const struct memtrace_recording *then;
    const struct memtrace_recording *now;
    (void)state;
    fill(&before, sizeof before);
    after = before;
    byteorder_turn_header(&after);
    then = (const void *)((const char *)&before + MEMTRACE_RECORDING_OFFSET);
    now = (const void *)((const char *)&after + MEMTRACE_RECORDING_OFFSET);
    assert_memory_equal(after.magic, before.magic, sizeof after.magic);
    assert_turned(&before, &after, version);
    assert_turned(&before, &after, machine);
    assert_turned(&before, &after, end);
    assert_turned(&before, &after, state);
    assert_turned(&before, &after, pool_count);
    assert_turned(&before, &after, context_count);
    assert_turned(&before, &after, end_monotonic_ns);
    assert_turned(&before, &after, peak_threads);
    assert_turned(&before, &after, live_bytes);
    assert_turned(&before, &after, inherited_bytes);
    assert_turned(&before, &after, lost[MEMTRACE_LOSS_FIRST_KINDS - 1]);
    assert_turned(&before, &after, churn_limit_bytes);
    assert_turned(&before, &after, summary);
    assert_turned(&before, &after, log_size_bytes);
    assert_turned(&before, &after, limit.bytes);
    assert_turned(&before, &after, limit.action);
    assert_turned(then, now, stream_count);
    assert_turned(then, now, cull_ns);
    assert_turned(then, now, begun);
    assert_turned(then, now, file_bytes);
    assert_turned(then, now, free_chunks[MEMTRACE_CHUNK_LIMIT / 64 - 1]);
    assert_memory_equal(now->path, then->path, sizeof now->path);
    assert_turned(&before, &after, owner.gid);
    assert_turned(&before, &after, run.pid_namespace);
    assert_turned(&before, &after, run.children);
    assert_turned(&before, &after, path_bytes);
    assert_turned(&before, &after, mode);
    assert_turned(&before, &after, birth_zero_ns);
    assert_turned(&before, &after, more_lost[MEMTRACE_LOSS_MORE_KINDS - 1]);
    assert_turned(&before, &after, sampled_heap);
    assert_turned(&before, &after, whole_bytes);
    assert_turned(&before, &after, command_bytes);
    assert_memory_equal(after.name, before.name, sizeof after.name);
    assert_turned(&before, &after, malloc_by.place);
    assert_memory_equal(after.malloc_by.name, before.malloc_by.name, sizeof after.malloc_by.name);
    assert_memory_equal(after.executable, before.executable,
                        sizeof after - offsetof(struct memtrace_header, executable));
    byteorder_turn_header(&after);
    assert_memory_equal(&after, &before, sizeof after);
}

/* --- files of one segment --------------------------------------------------------------------- */

enum { SEGMENT_BYTES = 2 * MEMTRACE_PAGE_SIZE, FILE_BYTES = MEMTRACE_HEADER_SIZE + SEGMENT_BYTES };

struct file {
    _Alignas(64) unsigned char bytes[FILE_BYTES];
};

static struct memtrace_segment *segment_of(struct file *file) {
    return (struct memtrace_segment *)(file->bytes + MEMTRACE_HEADER_SIZE);
}

static void make_file(struct file *file, unsigned kind, uint32_t size) {
    fill(file, sizeof *file);
    *segment_of(file) = (struct memtrace_segment){.magic = MEMTRACE_SEGMENT_MAGIC,
                                                  .kind = (uint16_t)kind,
                                                  .header_size = sizeof(struct memtrace_segment),
                                                  .owner = 7,
                                                  .index = 9,
                                                  .size = SEGMENT_BYTES,
                                                  .item_size = size,
                                                  .item_count = SEGMENT_BYTES / size,
                                                  .used = 3};
}

/* A segment header as the other order has it. */
static void turn_segment(struct memtrace_segment *segment) {
    segment->magic = __builtin_bswap32(segment->magic);
    segment->kind = __builtin_bswap16(segment->kind);
    segment->header_size = __builtin_bswap16(segment->header_size);
    segment->owner = __builtin_bswap32(segment->owner);
    segment->index = __builtin_bswap32(segment->index);
    segment->size = __builtin_bswap64(segment->size);
    segment->item_size = __builtin_bswap32(segment->item_size);
    segment->item_count = __builtin_bswap32(segment->item_count);
    segment->previous = __builtin_bswap32(segment->previous);
    segment->used = __builtin_bswap32(segment->used);
}

/* Turns the file with a segment of these items; `before` and `after` are then its last whole one.
 */
#define TURN_ITEMS(which, type)                                                                    \
    static struct file was, is;                                                                    \
    const type *before;                                                                            \
    const type *after;                                                                             \
    size_t last = MEMTRACE_HEADER_SIZE + (SEGMENT_BYTES / sizeof(type) - 1) * sizeof(type);        \
    (void)state;                                                                                   \
    make_file(&was, which, sizeof(type));                                                          \
    is = was;                                                                                      \
    turn_segment(segment_of(&is));                                                                 \
    byteorder_turn_file(is.bytes, sizeof is.bytes);                                                \
    assert_memory_equal(segment_of(&is), segment_of(&was), sizeof(struct memtrace_segment));       \
    before = (const void *)(was.bytes + last);                                                     \
    after = (const void *)(is.bytes + last)

static void test_nodes(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_TREE, struct memtrace_node);
    assert_turned(before, after, frame);
    assert_turned(before, after, parent);
}

static void test_cells(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_LEDGER, struct memtrace_cell);
    assert_turned(before, after, alloc_bytes);
    assert_turned(before, after, saved_live);
    assert_turned(before, after, peak_epoch);
    assert_turned(before, after, lifetimes);
}

static void test_lifetimes(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_LIFETIMES, struct memtrace_lifetimes);
    assert_turned(before, after, bucket[0]);
    assert_turned(before, after, bucket[MEMTRACE_LIFETIME_BUCKETS - 1]);
}

static void test_threads(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_THREADS, struct memtrace_thread_record);
    assert_turned(before, after, column);
    assert_turned(before, after, start_ns);
    assert_turned(before, after, foreign_free_bytes);
    assert_turned(before, after, frees);
    assert_memory_equal(after->name, before->name, sizeof after->name);
}

static void test_modules(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_MODULES, struct memtrace_module);
    assert_turned(before, after, build_id_size);
    assert_turned(before, after, start);
    assert_turned(before, after, unload_ns);
    assert_memory_equal(after->build_id, before->build_id, sizeof after->build_id);
    assert_memory_equal(after->path, before->path, sizeof after->path);
}

static void test_frees(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_FREES, struct memtrace_foreign_frees);
    assert_turned(before, after, count);
    assert_turned(before, after, bytes);
}

static void test_processes(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_PROCESSES, struct memtrace_process);
    assert_turned(before, after, path_count);
    assert_turned(before, after, start_ns);
    assert_turned(before, after, lost);
    assert_memory_equal(after->name, before->name, sizeof after->name);
    assert_turned(before, after, inherited_free_bytes);
}

static void test_paths(void **state) {
    TURN_ITEMS(MEMTRACE_SEGMENT_PATHS, struct memtrace_path);
    assert_turned(before, after, frame);
    assert_turned(before, after, parent);
    assert_turned(before, after, alloc_bytes);
    assert_turned(before, after, free_count);
}

/* (A double has the bytes of a number.) */
static void test_estimates(void **state) {
    uint64_t then[4];
    uint64_t now[4];
    TURN_ITEMS(MEMTRACE_SEGMENT_ESTIMATES, struct memtrace_estimate);
    memcpy(then, before, sizeof then);
    memcpy(now, after, sizeof now);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(now[i], __builtin_bswap64(then[i]));
    }
}

/* The header of a file is turned with its segments. */
static void test_whole_file(void **state) {
    static struct file file;
    struct memtrace_header expected;
    (void)state;
    make_file(&file, MEMTRACE_SEGMENT_THREADS, sizeof(struct memtrace_thread_record));
    memcpy(&expected, file.bytes, sizeof expected);
    byteorder_turn_header(&expected);
    turn_segment(segment_of(&file));
    byteorder_turn_file(file.bytes, sizeof file.bytes);
    assert_memory_equal(file.bytes, &expected, sizeof expected);
    assert_int_equal(segment_of(&file)->kind, MEMTRACE_SEGMENT_THREADS);
}

/* Items that are not known by this size, and those of a collector: the segment has no kind. */
static void test_others(void **state) {
    static const unsigned kinds[] = {MEMTRACE_SEGMENT_EVENTS, MEMTRACE_SEGMENT_TIMELINE,
                                     MEMTRACE_SEGMENT_THREADS};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static struct file file;
        make_file(&file, kinds[i], 136);
        turn_segment(segment_of(&file));
        byteorder_turn_file(file.bytes, sizeof file.bytes);
        assert_int_equal(segment_of(&file)->kind, 0);
        assert_int_equal(segment_of(&file)->size, SEGMENT_BYTES);
    }
}

/* Whatever the sizes say, and wherever the file ends, nothing outside of it is touched: what runs
 * this with AddressSanitizer sees it. */
static void test_lies(void **state) {
    static struct file file;
    (void)state;
    for (size_t size = MEMTRACE_HEADER_SIZE; size < FILE_BYTES; size += 61) {
        unsigned char *bytes = malloc(size);
        assert_non_null(bytes);
        make_file(&file, MEMTRACE_SEGMENT_LEDGER, sizeof(struct memtrace_cell));
        segment_of(&file)->size = UINT64_MAX - MEMTRACE_PAGE_SIZE + 1;
        turn_segment(segment_of(&file));
        memcpy(bytes, file.bytes, size);
        byteorder_turn_file(bytes, size);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),     cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_whole_file), cmocka_unit_test(test_cells),
        cmocka_unit_test(test_lifetimes),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_modules),    cmocka_unit_test(test_frees),
        cmocka_unit_test(test_processes),  cmocka_unit_test(test_paths),
        cmocka_unit_test(test_estimates),  cmocka_unit_test(test_others),
        cmocka_unit_test(test_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
