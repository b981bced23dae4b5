/* SPDX-License-Identifier: MIT */
/*
 * collect_record_test.c: collect/record.c with all that is below it: what threads put into the
 * buffers of a region is what a reader finds in the file, once, whoever dies in between.
 */
#include "analyze/read/nodecode.h"
#include "analyze/read/recording.h"
#include "collect/record.h"
#include "tests/unit/event_same.h"
#include "tests/unit/event_stream.h"
#include "tests/unit/region_build.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { STREAMS = 3, EVENTS = 15000, LIVE_EVENTS = 100000 };

static struct stream start_stream(uint32_t number) {
    struct stream stream = stream_start(number, number, 1);
    stream.precise = number % 2 != 0;
    return stream;
}

static void write_stream(struct region_build *build, uint32_t count) {
    struct region_writer writer = region_writer_start(build, build->recording->stream_count + 1);
    struct stream stream = start_stream(writer.stream);
    for (uint32_t i = 0; i < count; i++) {
        struct event event;
        stream_next(&stream, &event);
        region_write(&writer, &event);
    }
}

/* What is known of each stream while a file is read. */
struct check {
    struct stream stream[STREAMS + 2];
    uint64_t events[STREAMS + 2];
    const struct memtrace_block_header *before[STREAMS + 2];
    bool nodes[MEMTRACE_LEAF_ITEMS];
};

static void check_nodes(struct check *check, const struct memtrace_block_header *block,
                        const struct recording_buffer *buffer) {
    struct memtrace_recording_node *nodes;
    assert_int_equal(nodecode_unpack(buffer->bytes, buffer->size, block->items, &nodes), 0);
    for (size_t i = 0; i < block->items; i++) {
        assert_uint_in_range(nodes[i].id, MEMTRACE_FIRST_CONTEXT, MEMTRACE_LEAF_ITEMS - 1);
        assert_false(check->nodes[nodes[i].id]);
        assert_true(nodes[i].parent == 0 || check->nodes[nodes[i].parent]);
        assert_int_equal(nodes[i].frame, 0x400000 + nodes[i].id * 16);
        check->nodes[nodes[i].id] = true;
    }
    free(nodes);
}

static void check_events(struct check *check, const struct memtrace_block_header *block,
                         const struct recording_buffer *buffer) {
    const struct memtrace_block_header *before = check->before[block->stream];
    struct event_decoder decoder;
    struct event got;
    struct event wanted;
    assert_int_equal(block->first_sequence, before != NULL ? before->end_sequence : 0);
    assert_int_equal(block->first_word, before != NULL ? before->end_word : 0);
    check->before[block->stream] = block;
    assert_int_equal(event_decoder_start(&decoder, block, buffer->bytes, buffer->size), 0);
    while (event_decoder_next(&decoder, &got) == 1) {
        stream_next(&check->stream[block->stream], &wanted);
        assert_same(&got, &wanted);
        assert_true(got.kind == EVENT_MAP || got.context < MEMTRACE_FIRST_CONTEXT ||
                    check->nodes[got.context]);
        check->events[block->stream]++;
    }
    assert_string_equal(decoder.error, "");
    event_decoder_end(&decoder);
}

/* The recorder's own stream has one event: why it ended. */
static void check_mark(struct check *check, const struct memtrace_block_header *block,
                       const struct recording_buffer *buffer) {
    static const char wanted[] = "recording: it could not go on: File too large";
    struct event_decoder decoder;
    struct event got;
    assert_int_equal(event_decoder_start(&decoder, block, buffer->bytes, buffer->size), 0);
    assert_int_equal(event_decoder_next(&decoder, &got), 1);
    assert_int_equal(got.kind, EVENT_MARK);
    assert_int_equal(got.text_size, strlen(wanted));
    assert_memory_equal(got.text, wanted, got.text_size);
    assert_int_equal(event_decoder_next(&decoder, &got), 0);
    event_decoder_end(&decoder);
    assert_int_equal(++check->events[0], 1);
}

/* Reads the file; every stream is in it from its first event on, without a gap. */
static void check_file(const char *path, struct check *check) {
    struct error error = {""};
    struct recording_buffer buffer = {0};
    struct recording *recording = recording_open(path, &error);
    assert_string_equal(error.message, "");
    assert_non_null(recording);
    assert_string_equal(recording->damage, "");
    *check = (struct check){0};
    for (uint32_t i = 1; i < STREAMS + 2; i++) {
        check->stream[i] = start_stream(i);
    }
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        assert_int_equal(recording_payload(recording, i, &buffer, &error), 0);
        if (block->kind == MEMTRACE_BLOCK_NODES) {
            check_nodes(check, block, &buffer);
        } else if (block->kind == MEMTRACE_BLOCK_EVENTS && block->stream == 0) {
            check_mark(check, block, &buffer);
        } else if (block->kind == MEMTRACE_BLOCK_EVENTS) {
            check_events(check, block, &buffer);
        }
    }
    recording_buffer_free(&buffer);
    recording_close(recording);
}

static void assert_all(const char *path, uint64_t events) {
    struct check check;
    check_file(path, &check);
    for (uint32_t i = 1; i <= STREAMS; i++) {
        assert_int_equal(check.events[i], events);
    }
}

static struct claim hold(const struct region_build *build) {
    struct claim claim;
    struct error error = {""};
    if (claim_open(build->path, &claim, &error) != CLAIM_OK) {
        fail_msg("%s", error.message);
    }
    return claim;
}

static struct record_result finish(const struct claim *claim) {
    struct record_result result;
    struct error error = {""};
    struct record *record = record_open(claim, &error);
    assert_string_equal(error.message, "");
    assert_non_null(record);
    record_finish(record, &result);
    return result;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void everything_that_was_left(void **state) {
    struct region_build *build = region_build_new(3, 0);
    struct claim claim = hold(build);
    struct record_result result;
    (void)state;
    for (uint32_t i = 0; i < STREAMS; i++) {
        write_stream(build, EVENTS);
    }
    result = finish(&claim);
    assert_int_equal(result.events, STREAMS * EVENTS);
    assert_string_equal(result.trouble.message, "");
    assert_string_equal(result.path, build->output);
    assert_all(build->output, EVENTS);
    claim_release(&claim);
    region_build_free(build);
}

/* The collector dies when it has written some blocks, torn one perhaps, and noted nothing of it. */
static void goes_on_with_a_torn_file(void **state) {
    struct region_build *build = region_build_new(3, 0);
    struct claim claim = hold(build);
    unsigned char *before = malloc(build->size);
    struct stat status;
    (void)state;
    assert_non_null(before);
    for (uint32_t i = 0; i < STREAMS; i++) {
        write_stream(build, EVENTS);
    }
    memcpy(before, build->bytes, build->size);
    finish(&claim);
    assert_int_equal(stat(build->output, &status), 0);
    for (off_t size = status.st_size; size > 0; size -= 1 + status.st_size / 37) {
        assert_int_equal(truncate(build->output, size), 0);
        memcpy(build->bytes, before, build->size);
        finish(&claim);
        assert_all(build->output, EVENTS);
    }
    free(before);
    claim_release(&claim);
    region_build_free(build);
}

/* Another process's file of that name is replaced, not gone on with. */
static void replaces_an_older_file(void **state) {
    struct region_build *build = region_build_new(3, 0);
    struct claim claim = hold(build);
    (void)state;
    write_stream(build, 100);
    build->header->start_monotonic_ns = 2;
    finish(&claim);
    build->header->start_monotonic_ns = 1;
    memset(build->recording->free_chunks, 0, sizeof build->recording->free_chunks);
    for (uint32_t i = 1; i < STREAMS; i++) {
        build->recording->free_chunks[i / 2] |= UINT64_C(0xfffffffe) << i % 2 * 32;
    }
    build->recording->stream_count = 0;
    write_stream(build, EVENTS);
    finish(&claim);
    struct check check;
    check_file(build->output, &check);
    assert_int_equal(check.events[1], EVENTS);
    claim_release(&claim);
    region_build_free(build);
}

static void *live_thread(void *argument) {
    struct region_build *build = argument;
    struct region_writer writer = region_writer_start(build, 0);
    struct stream stream = start_stream(writer.stream);
    writer.thread = writer.stream;
    for (uint32_t i = 0; i < LIVE_EVENTS; i++) {
        struct event event;
        stream_next(&stream, &event);
        region_write(&writer, &event);
    }
    region_leave(&writer);
    return NULL;
}

/* Few buffers, so that threads wait and chunks go round. */
static void while_threads_write(void **state) {
    struct region_build *build = region_build_new(1, MEMTRACE_RECORDING_PRECISE);
    struct claim claim = hold(build);
    struct error error = {""};
    struct record *record = record_open(&claim, &error);
    struct record_result result;
    pthread_t threads[STREAMS];
    (void)state;
    assert_non_null(record);
    assert_int_equal(record_start(record, &error), 0);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, live_thread, build), 0);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_not_equal(build->recording->heartbeat_ns, 0);
    record_finish(record, &result);
    assert_int_equal(result.events, STREAMS * LIVE_EVENTS);
    assert_all(build->output, LIVE_EVENTS);
    claim_release(&claim);
    region_build_free(build);
}

static void parts_can_be_read_alone(void **state) {
    struct region_build *build = region_build_new(1, 0);
    struct claim claim = hold(build);
    struct error error = {""};
    struct record *record;
    struct record_result result;
    pthread_t thread;
    uint64_t events = 0;
    (void)state;
    build->recording->rotate_bytes = 30000;
    record = record_open(&claim, &error);
    assert_non_null(record);
    assert_int_equal(record_start(record, &error), 0);
    assert_int_equal(pthread_create(&thread, NULL, live_thread, build), 0);
    pthread_join(thread, NULL);
    record_abandon(record); /* another one goes on */
    record = record_open(&claim, &error);
    assert_non_null(record);
    record_finish(record, &result);
    assert_true(result.parts > 2);
    for (uint32_t part = 0; part < result.parts; part++) {
        char path[200];
        struct recording *recording;
        snprintf(path, sizeof path, part == 0 ? "%s/out.mtr" : "%s/out.%u.mtr", build->folder,
                 part);
        recording = recording_open(path, &error);
        assert_non_null(recording);
        assert_true(recording->closed);
        assert_int_equal(recording->header.part, part);
        for (size_t i = 0; i < recording->block_count; i++) {
            const struct memtrace_block_header *block = &recording->blocks[i].block;
            events += block->kind == MEMTRACE_BLOCK_EVENTS ? block->items : 0;
        }
        recording_close(recording);
    }
    assert_int_equal(events, LIVE_EVENTS);
    claim_release(&claim);
    region_build_free(build);
}

/* A file may not grow past some size: the recording stops, and is whole up to there. */
static void a_full_disk(void **state) {
    struct rlimit old;
    struct check check;
    uint64_t marked = 0;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t size = 0; size < 200000; size = size * 2 + 64) {
        struct region_build *build = region_build_new(3, 0);
        struct claim claim = hold(build);
        struct error error = {""};
        struct record_result result = {0};
        struct record *record;
        for (uint32_t i = 0; i < STREAMS; i++) {
            write_stream(build, EVENTS);
        }
        setenv("TMPDIR", "/proc/none", 1);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){size, old.rlim_max});
        record = record_open(&claim, &error);
        if (record != NULL) {
            record_finish(record, &result);
        }
        setrlimit(RLIMIT_FSIZE, &old);
        unsetenv("TMPDIR");
        assert_int_equal(build->recording->state, MEMTRACE_RECORD_STOPPED);
        if (record != NULL) {
            assert_non_null(strstr(result.trouble.message, "File too large"));
            check_file(build->output, &check);
            assert_int_equal(check.events[0] + check.events[1] + check.events[2] + check.events[3],
                             result.events);
            marked += check.events[0];
        } else {
            assert_non_null(strstr(error.message, "File too large"));
        }
        claim_release(&claim);
        region_build_free(build);
    }
    assert_true(marked >= 3); /* where there is room for anything, there is for the mark */
}

static void a_place_that_takes_no_file(void **state) {
    struct region_build *build = region_build_new(1, 0);
    struct claim claim = hold(build);
    struct record_result result;
    (void)state;
    snprintf(build->recording->path, sizeof build->recording->path, "%s/none/out.mtr",
             build->folder);
    setenv("TMPDIR", build->folder, 1);
    write_stream(build, 100);
    struct error error = {""};
    struct record *record = record_open(&claim, &error);
    assert_non_null(record);
    record_finish(record, &result);
    unsetenv("TMPDIR");
    assert_non_null(strstr(result.trouble.message, "No such file or directory; it is at "));
    assert_string_equal(result.path, build->output);
    assert_string_equal(build->recording->path, build->output);
    claim_release(&claim);
    region_build_free(build);
}

/* Whatever a region holds, the collector neither reads nor writes outside of it, nor hangs. */
static void garbage(void **state) {
    struct stream stream = stream_start(77, 1, 1);
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct region_build *build = region_build_new(1, 0);
        struct claim claim = hold(build);
        struct error error = {""};
        struct record_result result;
        struct record *record;
        write_stream(build, 5000);
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t *chunk = (void *)(build->segments[0] + 1 + stream_below(&stream, 8));
            uint64_t place = stream_below(&stream, 3) != 0 ? stream_below(&stream, 8)
                                                           : stream_below(&stream, 4096);
            chunk[place] = stream_random(&stream) >> stream_below(&stream, 64);
        }
        build->recording->free_chunks[0] &= stream_random(&stream);
        record = record_open(&claim, &error);
        assert_non_null(record);
        record_finish(record, &result);
        struct recording *recording = recording_open(build->output, &error);
        assert_non_null(recording);
        assert_string_equal(recording->damage, "");
        recording_close(recording);
        claim_release(&claim);
        region_build_free(build);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_was_left),   cmocka_unit_test(goes_on_with_a_torn_file),
        cmocka_unit_test(replaces_an_older_file),     cmocka_unit_test(while_threads_write),
        cmocka_unit_test(parts_can_be_read_alone),    cmocka_unit_test(a_full_disk),
        cmocka_unit_test(a_place_that_takes_no_file), cmocka_unit_test(garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
