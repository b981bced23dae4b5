/* SPDX-License-Identifier: MIT */
/* recordwriter_test.c: what is handed over piece by piece comes back from the file it makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/transform/recordwriter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static struct recordwriter *begin(void) {
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    snprintf(path, sizeof path, "/tmp/recordwriter_test.%ld", (long)getpid());
    return recordwriter_open(path, &header, 1);
}

static void put_program(struct recordwriter *writer) {
    struct memtrace_header program = {.version = MEMTRACE_FORMAT_VERSION,
                                      .header_size = MEMTRACE_HEADER_SIZE,
                                      .byte_order = MEMTRACE_BYTE_ORDER,
                                      .end = MEMTRACE_HEADER_SIZE};
    memcpy(program.magic, MEMTRACE_MAGIC, sizeof program.magic);
    recordwriter_table(writer, MEMTRACE_BLOCK_PROGRAM, &program, 1, sizeof program);
}

static struct recording *end(struct recordwriter *writer, struct error *error) {
    struct recording *recording;
    recordwriter_close(writer);
    recording = recording_open(path, error);
    assert_non_null(recording);
    assert_true(recording->closed);
    assert_string_equal(recording->damage, "");
    return recording;
}

static void done(struct recording *recording) {
    recording_close(recording);
    unlink(path);
}

static size_t count_blocks(const struct recording *recording, enum memtrace_block_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < recording->block_count; i++) {
        count += recording->blocks[i].block.kind == kind;
    }
    return count;
}

/* The place of the n-th block of a kind. */
static size_t find_block(const struct recording *recording, enum memtrace_block_kind kind,
                         size_t n) {
    size_t i = 0;
    while (i < recording->block_count && (recording->blocks[i].block.kind != kind || n-- != 0)) {
        i++;
    }
    assert_true(i < recording->block_count);
    return i;
}

static void nodes_stand_before_their_events(void **state) {
    struct error error = {""};
    struct recordwriter *writer = begin();
    struct recording *recording;
    struct memtrace_node *nodes;
    size_t count;
    (void)state;
    put_program(writer);
    for (uint32_t id = 5; id < 9; id++) {
        const struct memtrace_block_header block = {.stream = 3,
                                                    .thread = 2,
                                                    .first_number = id,
                                                    .first_sequence = id,
                                                    .end_sequence = id + 1};
        const struct memtrace_recording_node node = {.frame = 0x1000 * id, .parent = 0, .id = id};
        const struct event event = {
            .kind = EVENT_ALLOC, .context = id, .block = {id, 2}, .size = 10 * id, .time_ns = id};
        recordwriter_begin_events(writer, &block);
        recordwriter_node(writer, &node);
        recordwriter_event(writer, &event);
    }
    recording = end(writer, &error);
    assert_int_equal(writer->event_count, 4);
    assert_int_equal(count_blocks(recording, MEMTRACE_BLOCK_EVENTS), 4);
    for (size_t n = 0; n < 4; n++) {
        size_t at = find_block(recording, MEMTRACE_BLOCK_EVENTS, n);
        const struct memtrace_block_header *block = &recording->blocks[at].block;
        assert_true(find_block(recording, MEMTRACE_BLOCK_NODES, n) < at);
        assert_int_equal(block->stream, 3);
        assert_int_equal(block->thread, 2);
        assert_int_equal(block->items, 1);
        assert_int_equal(block->first_sequence, 5 + n);
        assert_int_equal(block->end_sequence, 6 + n);
    }
    assert_int_equal(recording_nodes(recording, &nodes, &count, &error), 0);
    assert_int_equal(count, 9);
    assert_int_equal(nodes[8].frame, 0x8000);
    free(nodes);
    done(recording);
}

/* Else the next block of its stream would seem to come after a loss. */
static void a_block_without_events_is_written(void **state) {
    struct error error = {""};
    const struct memtrace_block_header block = {
        .stream = 1, .thread = 2, .first_sequence = 7, .first_word = 3};
    struct recordwriter *writer = begin();
    struct recording *recording;
    size_t at;
    (void)state;
    put_program(writer);
    recordwriter_begin_events(writer, &block);
    writer->events.end_sequence = 9;
    writer->events.end_word = 11;
    recording = end(writer, &error);
    assert_int_equal(count_blocks(recording, MEMTRACE_BLOCK_EVENTS), 1);
    at = find_block(recording, MEMTRACE_BLOCK_EVENTS, 0);
    assert_int_equal(recording->blocks[at].block.items, 0);
    assert_int_equal(recording->blocks[at].block.first_word, 3);
    assert_int_equal(recording->blocks[at].block.end_sequence, 9);
    assert_int_equal(recording->blocks[at].block.end_word, 11);
    done(recording);
}

static void blocks_have_room_for_so_many(void **state) {
    const struct memtrace_block_header block = {.stream = 1, .thread = 2, .first_number = 1};
    struct recordwriter *writer = begin();
    (void)state;
    recordwriter_begin_events(writer, &block);
    assert_true(recordwriter_has_room(writer, RECORDWRITER_EVENTS, 0));
    assert_false(recordwriter_has_room(writer, RECORDWRITER_EVENTS + 1, 0));
    assert_false(recordwriter_has_room(writer, 1, (size_t)1 << 30));
    unlink(path);
}

/* More than a block holds, with texts that come again and texts that are not there. */
static void names_come_back(void **state) {
    enum { FRAMES = 40000 };
    struct error error = {""};
    struct recordwriter *writer = begin();
    struct recording *recording;
    const struct recording *parts[1];
    struct framenames names;
    (void)state;
    put_program(writer);
    for (uint64_t i = 1; i <= FRAMES; i++) {
        char function[32];
        snprintf(function, sizeof function, "function_%d", (int)(i % 500));
        const struct framename frame[] = {
            {.frame = i << 8, .function = function, .file = "a.c", .line = 7, .column = 2},
            {.frame = i << 8, .function = "caller", .file = i % 2 != 0 ? "b.c" : NULL, .line = 1}};
        recordwriter_names(writer, frame, 2);
    }
    recording = end(writer, &error);
    parts[0] = recording;
    assert_int_equal(count_blocks(recording, MEMTRACE_BLOCK_NAMES), 2);
    assert_int_equal(framenames_read(&names, parts, 1, &error), 0);
    assert_int_equal(names.count, 2 * FRAMES);
    for (uint64_t i = 1; i <= FRAMES; i++) {
        char function[32];
        size_t count;
        const struct framename *found = framenames_find(&names, i << 8, &count);
        snprintf(function, sizeof function, "function_%d", (int)(i % 500));
        assert_int_equal(count, 2);
        assert_string_equal(found[0].function, function);
        assert_string_equal(found[0].file, "a.c");
        assert_int_equal(found[0].line, 7);
        assert_int_equal(found[0].column, 2);
        assert_string_equal(found[1].function, "caller");
        if (i % 2 != 0) {
            assert_string_equal(found[1].file, "b.c");
        } else {
            assert_null(found[1].file);
        }
    }
    framenames_free(&names);
    done(recording);
}

static void samples_are_gathered(void **state) {
    struct error error = {""};
    struct recordwriter *writer = begin();
    struct recording *recording;
    const struct memtrace_block_header *block;
    (void)state;
    put_program(writer);
    for (uint64_t i = 1; i <= 100; i++) {
        const struct memtrace_sample sample = {.time_ns = 10 * i, .resident_bytes = i};
        recordwriter_sample(writer, &sample);
        put_program(writer);
    }
    recording = end(writer, &error);
    block = &recording->blocks[find_block(recording, MEMTRACE_BLOCK_SAMPLES, 0)].block;
    assert_int_equal(count_blocks(recording, MEMTRACE_BLOCK_SAMPLES), 1);
    assert_int_equal(block->items, 100);
    assert_int_equal(block->first_ns, 10);
    assert_int_equal(block->last_ns, 1000);
    done(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stand_before_their_events),
        cmocka_unit_test(a_block_without_events_is_written),
        cmocka_unit_test(blocks_have_room_for_so_many),
        cmocka_unit_test(names_come_back),
        cmocka_unit_test(samples_are_gathered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
