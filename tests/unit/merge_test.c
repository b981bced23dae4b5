/* SPDX-License-Identifier: MIT */
/* merge_test.c: what becomes of two processes' events, samples and files in one recording,
 * and of two profiles' timelines in one profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/mergeprofiles.h"
#include "collect/transform/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXT = MEMTRACE_FIRST_CONTEXT, THREAD = MEMTRACE_THREAD_OTHERS + 1, LATER_NS = 5000 };

static char paths[3][64]; /* of the two, and of the merged one */

/*
 * A process that allocates one block of so many bytes at 100 ns and is sampled at 200 ns, with a
 * program file inside. Its only stream has number 1; it begins at the sequence where the other
 * process's ends.
 */
static struct recording *make(int which, uint64_t size) {
    struct error error = {""};
    const uint64_t start_ns = 1000000 + (uint64_t)which * LATER_NS;
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER,
                                               .pid = 100 + (uint32_t)which};
    struct memtrace_header program = {.version = MEMTRACE_FORMAT_VERSION,
                                      .header_size = MEMTRACE_HEADER_SIZE,
                                      .byte_order = MEMTRACE_BYTE_ORDER,
                                      .end = MEMTRACE_HEADER_SIZE,
                                      .pid = 100 + (uint32_t)which,
                                      .state = MEMTRACE_STATE_ENDED,
                                      .start_realtime_ns = start_ns,
                                      .start_monotonic_ns = start_ns,
                                      .end_monotonic_ns = start_ns + 300,
                                      .clock_ns = 300};
    const struct memtrace_module module = {.id = 1,
                                           .start = 0x1000,
                                           .end = 0x9000,
                                           .build_id = {7, 7},
                                           .build_id_size = 2,
                                           .path = "/a"};
    const struct memtrace_recording_node node = {
        .frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | 0x2000, .id = CONTEXT};
    const struct memtrace_block_header block = {.stream = 1,
                                                .thread = THREAD,
                                                .first_number = 1,
                                                .first_sequence = (uint32_t)which,
                                                .end_sequence = (uint32_t)which + 1};
    const struct event event = {.kind = EVENT_ALLOC,
                                .context = CONTEXT,
                                .block = {1, THREAD},
                                .address = 0x5000,
                                .size = size,
                                .time_ns = 100};
    const struct memtrace_sample sample = {.time_ns = 200, .resident_bytes = size};
    const struct memtrace_thread_record thread = {.id = THREAD, .tid = 100, .name = "worker"};
    static const struct memtrace_recording_pool pools[2][2] = {
        {{.number = 0, .name = "arena"}, {.number = 1, .name = "first"}},
        {{.number = 0, .name = "second"}, {.number = 1, .name = "arena"}},
    };
    struct {
        struct memtrace_embedded head;
        char path[3], bytes[5];
    } file = {{.module = 1,
               .what = MEMTRACE_EMBEDDED_SYMBOLS,
               .size = 5,
               .build_id = {7, 7},
               .build_id_size = 2,
               .path_size = 3},
              "/a",
              {'b', 'y', 't', 'e', 's'}};
    struct recordwriter *writer;
    struct recording *recording;
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    memcpy(program.magic, MEMTRACE_MAGIC, sizeof program.magic);
    snprintf(paths[which], sizeof paths[which], "/tmp/merge_test.%ld.%d", (long)getpid(), which);
    writer = recordwriter_open(paths[which], &header, 1);
    recordwriter_table(writer, MEMTRACE_BLOCK_PROGRAM, &program, 1, sizeof program);
    recordwriter_node(writer, &node);
    recordwriter_table(writer, MEMTRACE_BLOCK_MODULES, &module, 1, sizeof module);
    recordwriter_table(writer, MEMTRACE_BLOCK_POOLS, pools[which], 2, sizeof **pools);
    recordwriter_begin_events(writer, &block);
    recordwriter_event(writer, &event);
    recordwriter_sample(writer, &sample);
    recordwriter_table(writer, MEMTRACE_BLOCK_FILE, &file, 1, sizeof file);
    recordwriter_table(writer, MEMTRACE_BLOCK_THREADS, &thread, 1, sizeof thread);
    recordwriter_close(writer);
    recording = recording_open(paths[which], &error);
    assert_non_null(recording);
    return recording;
}

static struct recording *merged;
static struct recording_buffer buffer;

static int merge(void **state) {
    struct error error = {""};
    const struct transform_options options = {.level = 1};
    const struct recording *both[] = {make(1, 300), make(0, 70)}; /* in any order */
    struct merge_result result;
    (void)state;
    snprintf(paths[2], sizeof paths[2], "/tmp/merge_test.%ld.2", (long)getpid());
    assert_int_equal(merge_recordings(both, 2, paths[2], &options, &result, &error), 0);
    assert_int_equal(result.processes, 2);
    assert_int_equal(result.written.kept, 2);
    recording_close((struct recording *)both[0]);
    recording_close((struct recording *)both[1]);
    merged = recording_open(paths[2], &error);
    assert_non_null(merged);
    return 0;
}

static int drop(void **state) {
    (void)state;
    recording_close(merged);
    recording_buffer_free(&buffer);
    for (size_t i = 0; i < 3; i++) {
        unlink(paths[i]);
    }
    return 0;
}

/* The payload of the n-th block of a kind is in the buffer; NULL: there are not so many. */
static const struct memtrace_block_header *take(enum memtrace_block_kind kind, size_t n) {
    for (size_t i = 0; i < merged->block_count; i++) {
        if (merged->blocks[i].block.kind == kind && n-- == 0) {
            assert_int_equal(recording_payload(merged, i, &buffer, NULL), 0);
            return &merged->blocks[i].block;
        }
    }
    return NULL;
}

static void each_process_has_a_stream_and_a_thread(void **state) {
    const struct memtrace_block_header *first;
    const struct memtrace_block_header *second;
    (void)state;
    first = take(MEMTRACE_BLOCK_EVENTS, 0);
    second = take(MEMTRACE_BLOCK_EVENTS, 1);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(take(MEMTRACE_BLOCK_EVENTS, 2));
    assert_int_not_equal(first->stream, second->stream);
    assert_int_not_equal(first->thread, second->thread);
    assert_int_equal(first->first_number, 1);
    assert_int_equal(second->first_number, 1);
}

/* As long after the first process's start as they were after their own, and the start itself. */
static void times_count_from_the_first_start(void **state) {
    static const uint64_t times[] = {100, LATER_NS + 100};
    static const uint64_t sizes[] = {70, 300};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        struct event_decoder decoder = {0};
        struct event event;
        const struct memtrace_block_header *block = take(MEMTRACE_BLOCK_EVENTS, n);
        assert_int_equal(event_decoder_start(&decoder, block, buffer.bytes, buffer.size), 0);
        assert_int_equal(event_decoder_next(&decoder, &event), 1);
        assert_int_equal(event.size, sizes[n]);
        assert_int_equal(event.block.thread, block->thread);
        assert_int_equal(block->first_ns, times[n]);
        event_decoder_end(&decoder);
    }
    assert_int_equal(merged->program.start_realtime_ns, 1000000);
    assert_int_equal(merged->program.clock_ns, LATER_NS + 300);
}

/* The first one's 70 bytes go with its end at 300 ns, the other one's 300 with its own. */
static void samples_are_sums_of_who_runs(void **state) {
    static const struct memtrace_sample wanted[] = {
        {.time_ns = 200, .resident_bytes = 70},
        {.time_ns = 300, .resident_bytes = 0},
        {.time_ns = LATER_NS + 200, .resident_bytes = 300},
        {.time_ns = LATER_NS + 300, .resident_bytes = 0}};
    (void)state;
    assert_non_null(take(MEMTRACE_BLOCK_SAMPLES, 0));
    assert_int_equal(buffer.size, sizeof wanted);
    assert_memory_equal(buffer.bytes, wanted, sizeof wanted);
}

static void a_file_that_both_have_is_there_once(void **state) {
    (void)state;
    assert_non_null(take(MEMTRACE_BLOCK_FILE, 0));
    assert_null(take(MEMTRACE_BLOCK_FILE, 1));
}

static void a_pool_that_both_have_is_there_once(void **state) {
    static const char *const names[] = {"arena", "first", "second"};
    const struct memtrace_recording_pool *pools;
    (void)state;
    assert_non_null(take(MEMTRACE_BLOCK_POOLS, 0));
    assert_int_equal(buffer.size, 3 * sizeof *pools);
    pools = (const void *)buffer.bytes;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pools[i].number, i);
        assert_string_equal(pools[i].name, names[i]);
    }
    assert_null(take(MEMTRACE_BLOCK_POOLS, 1));
}

static void equal_call_paths_are_one(void **state) {
    struct error error = {""};
    struct memtrace_node *nodes;
    size_t count;
    size_t there = 0;
    (void)state;
    assert_int_equal(recording_nodes(merged, &nodes, &count, &error), 0);
    for (size_t i = 0; i < count; i++) {
        there += nodes[i].frame >= MEMTRACE_FRAME_CLASSES;
    }
    assert_int_equal(there, 1);
    free(nodes);
}

/* ---- Profiles ---- */

/* A process that held so much at 100 ns and at 200 ns, its last point. */
static void make_profile(int which, uint64_t resident) {
    static struct memtrace_timeline timeline;
    const uint64_t start_ns = 1000000 + (uint64_t)which * LATER_NS;
    struct memtrace_header header = {.pid = 100 + (uint32_t)which,
                                     .state = MEMTRACE_STATE_ENDED,
                                     .start_realtime_ns = start_ns,
                                     .start_monotonic_ns = start_ns,
                                     .end_monotonic_ns = start_ns + 300,
                                     .clock_ns = 300};
    struct profilewrite write;
    FILE *out;
    snprintf(paths[which], sizeof paths[which], "/tmp/merge_test.%ld.%d", (long)getpid(), which);
    out = fopen(paths[which], "w");
    assert_non_null(out);
    for (uint32_t i = 0; i < 2; i++) {
        timeline.point[i] =
            (struct memtrace_point){.time_ns = 100 * (i + 1), .resident_bytes = resident};
    }
    timeline.count = 2;
    write = profilewrite_begin();
    profilewrite_segment(&write, MEMTRACE_SEGMENT_TIMELINE, 0, 0, &timeline, sizeof timeline, 1);
    profilewrite_end(&write, &header, out);
    fclose(out);
}

/* With the points that a model adds for a process's start and end. Its resident set goes then. */
static void timelines_are_sums_of_who_runs(void **state) {
    static const struct memtrace_point wanted[] = {
        {.time_ns = 0, .resident_bytes = 7},
        {.time_ns = 100, .resident_bytes = 7},
        {.time_ns = 200, .resident_bytes = 7},
        {.time_ns = 300, .resident_bytes = 7},
        {.time_ns = 301, .resident_bytes = 0},
        {.time_ns = LATER_NS, .resident_bytes = 50},
        {.time_ns = LATER_NS + 100, .resident_bytes = 50},
        {.time_ns = LATER_NS + 200, .resident_bytes = 50},
        {.time_ns = LATER_NS + 300, .resident_bytes = 50},
        {.time_ns = LATER_NS + 301, .resident_bytes = 0}};
    struct error error = {""};
    char *both[] = {paths[1], paths[0]};
    struct profile *profile;
    struct model *model;
    FILE *out;
    (void)state;
    make_profile(0, 7);
    make_profile(1, 50);
    out = fopen(paths[2], "w");
    assert_non_null(out);
    assert_int_equal(merge_profiles(both, 2, NULL, NULL, out, &error), 0);
    fclose(out);
    profile = profile_open(paths[2], &error);
    assert_non_null(profile);
    model = model_load(profile, &error);
    assert_non_null(model);
    assert_int_equal(model->header.merged, 2);
    assert_int_equal(model->timeline_count, sizeof wanted / sizeof wanted[0]);
    assert_memory_equal(model->timeline, wanted, sizeof wanted);
    model_free(model);
    profile_close(profile);
}

/* Costs of paths that are no nodes, as only a damaged profile has; the maxima are more than fit. */
static void costs_without_nodes(void **state) {
    struct error error = {""};
    char *both[] = {paths[1], paths[0]};
    FILE *out;
    (void)state;
    for (int which = 0; which < 2; which++) {
        static struct memtrace_cell cells[2 * CONTEXT];
        struct memtrace_header header = {.pid = 100 + (uint32_t)which,
                                         .state = MEMTRACE_STATE_ENDED};
        struct profilewrite write = profilewrite_begin();
        out = fopen(paths[which], "w");
        assert_non_null(out);
        cells[CONTEXT] = (struct memtrace_cell){
            .alloc_bytes = INT64_MAX, .alloc_count = 1, .saved_live = INT64_MAX, .peak_epoch = 1};
        profilewrite_leaves(&write, MEMTRACE_SEGMENT_LEDGER, 1, cells, sizeof *cells,
                            sizeof cells / sizeof *cells);
        profilewrite_end(&write, &header, out);
        fclose(out);
    }
    out = fopen(paths[2], "w");
    assert_non_null(out);
    assert_int_equal(merge_profiles(both, 2, NULL, NULL, out, &error), 0);
    fclose(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_stream_and_a_thread),
        cmocka_unit_test(times_count_from_the_first_start),
        cmocka_unit_test(samples_are_sums_of_who_runs),
        cmocka_unit_test(a_file_that_both_have_is_there_once),
        cmocka_unit_test(a_pool_that_both_have_is_there_once),
        cmocka_unit_test(equal_call_paths_are_one),
        cmocka_unit_test(timelines_are_sums_of_who_runs),
        cmocka_unit_test(costs_without_nodes),
    };
    return cmocka_run_group_tests(tests, merge, drop);
}
