/* SPDX-License-Identifier: MIT */
/* drain_test.c: chunks and their words, in the states that a region shows for a moment only. */
#include "analyze/read/profile.h"
#include "collect/drain.h"
#include "tests/unit/region_build.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct region_build *build;
    struct profile *profile;
    struct drain drain;
};

static struct fixture open_fixture(void) {
    struct fixture fixture = {.build = region_build_new(1, 0)};
    int fd = open(fixture.build->path, O_RDWR);
    fixture.profile = profile_open(fixture.build->path, NULL);
    assert_non_null(fixture.profile);
    assert_int_equal(drain_open(&fixture.drain, fixture.build->recording), 0);
    drain_map(&fixture.drain, fixture.profile, fd);
    close(fd);
    return fixture;
}

static void close_fixture(struct fixture *fixture) {
    drain_close(&fixture->drain);
    profile_close(fixture->profile);
    region_build_free(fixture->build);
}

/* A mark whose id is how many came before it in its stream. */
static void put_marks(struct region_writer *writer, uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; i++) {
        struct event event = {.kind = EVENT_MARK, .operation = MEMTRACE_MARK_POINT, .id = i};
        region_write(writer, &event);
    }
}

/* Reads a span's marks, which go on from `first`; how many there were. */
static uint64_t read_marks(struct drain_cursor *cursor, uint64_t first) {
    struct event event;
    uint64_t count = 0;
    while (drain_next(cursor, &event) == 1) {
        assert_int_equal(event.kind, EVENT_MARK);
        assert_int_equal(event.id, first + count);
        count++;
    }
    return count;
}

static uint64_t free_bits(const struct fixture *fixture) {
    return fixture->build->recording->free_chunks[0];
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_chunk_comes_back_when_all_of_it_is_committed(void **state) {
    struct fixture fixture = open_fixture();
    struct region_writer writer = region_writer_start(fixture.build, 7);
    struct drain_span span = {0};
    struct drain_cursor cursor;
    uint64_t all = free_bits(&fixture);
    (void)state;
    put_marks(&writer, 0, MEMTRACE_CHUNK_WORDS + 10); /* one full chunk and a bit */
    assert_int_equal(drain_look(&fixture.drain), 0);
    assert_true(drain_next_span(&fixture.drain, false, &span));
    assert_int_equal(span.stream, writer.stream);
    assert_int_equal(span.thread, 7);
    assert_int_equal(span.count, 2);
    assert_int_equal(span.full, 1);
    assert_int_equal(span.words, MEMTRACE_CHUNK_WORDS + 10);
    drain_start(&fixture.drain, &span, &cursor);
    assert_int_equal(read_marks(&cursor, 0), MEMTRACE_CHUNK_WORDS + 10);
    assert_int_not_equal(free_bits(&fixture), all);
    assert_int_equal(__builtin_popcountll(all & ~free_bits(&fixture)), 2);
    drain_commit(&cursor);
    assert_int_equal(__builtin_popcountll(all & ~free_bits(&fixture)), 1);
    assert_int_equal(writer.chunk->drained, 10);
    assert_false(drain_next_span(&fixture.drain, false, &span));

    put_marks(&writer, MEMTRACE_CHUNK_WORDS + 10, 5); /* and on from there */
    assert_int_equal(drain_look(&fixture.drain), 0);
    span = (struct drain_span){0};
    assert_true(drain_next_span(&fixture.drain, false, &span));
    assert_int_equal(span.words, 5);
    drain_start(&fixture.drain, &span, &cursor);
    assert_int_equal(read_marks(&cursor, MEMTRACE_CHUNK_WORDS + 10), 5);
    close_fixture(&fixture);
}

/* A look at all chunks is no moment: the second chunk of a stream may be seen and the first not. */
static void what_lies_behind_a_gap_waits(void **state) {
    struct fixture fixture = open_fixture();
    struct region_writer writer = region_writer_start(fixture.build, 7);
    struct drain_span span = {0};
    struct drain_cursor cursor;
    (void)state;
    put_marks(&writer, 0, 1);
    struct memtrace_chunk *first = writer.chunk;
    put_marks(&writer, 1, MEMTRACE_CHUNK_WORDS);
    first->state = MEMTRACE_CHUNK_FREE; /* just taken, it seems */
    assert_int_equal(drain_look(&fixture.drain), 0);
    assert_false(drain_next_span(&fixture.drain, false, &span));
    assert_true(drain_next_span(&fixture.drain, true, &span)); /* nobody writes: it is lost */
    assert_int_equal(span.count, 1);
    first->state = MEMTRACE_CHUNK_FULL;
    assert_int_equal(drain_look(&fixture.drain), 0);
    span = (struct drain_span){0};
    assert_true(drain_next_span(&fixture.drain, false, &span));
    drain_start(&fixture.drain, &span, &cursor);
    assert_int_equal(read_marks(&cursor, 0), MEMTRACE_CHUNK_WORDS + 1);
    close_fixture(&fixture);
}

/* Seen open, then left for the next one: all of it comes before the next one. */
static void a_chunk_is_read_as_it_is_now(void **state) {
    struct fixture fixture = open_fixture();
    struct region_writer writer = region_writer_start(fixture.build, 7);
    struct drain_span span = {0};
    struct drain_cursor cursor;
    (void)state;
    put_marks(&writer, 0, 100);
    assert_int_equal(drain_look(&fixture.drain), 0);
    put_marks(&writer, 100, MEMTRACE_CHUNK_WORDS);
    assert_true(drain_next_span(&fixture.drain, false, &span));
    drain_start(&fixture.drain, &span, &cursor);
    assert_int_equal(read_marks(&cursor, 0), MEMTRACE_CHUNK_WORDS);
    drain_commit(&cursor);
    assert_int_equal(drain_look(&fixture.drain), 0);
    span = (struct drain_span){0};
    assert_true(drain_next_span(&fixture.drain, false, &span));
    drain_start(&fixture.drain, &span, &cursor);
    assert_int_equal(read_marks(&cursor, MEMTRACE_CHUNK_WORDS), 100);
    close_fixture(&fixture);
}

/* The collector before us wrote the first chunk down, and five words of the second, and died. */
static void a_dead_collectors_chunk_comes_back(void **state) {
    struct fixture fixture = open_fixture();
    struct region_writer writer = region_writer_start(fixture.build, 7);
    struct drain_span span = {0};
    uint64_t all = free_bits(&fixture);
    struct memtrace_chunk *first;
    (void)state;
    put_marks(&writer, 0, 1);
    first = writer.chunk;
    put_marks(&writer, 1, MEMTRACE_CHUNK_WORDS + 9);
    assert_int_equal(drain_note_written(&fixture.drain, writer.stream, (struct drain_place){1, 5}),
                     0);
    assert_int_equal(drain_look(&fixture.drain), 0);
    assert_int_equal(first->state, MEMTRACE_CHUNK_FREE);
    assert_int_equal(writer.chunk->state, MEMTRACE_CHUNK_OPEN);
    assert_int_equal(__builtin_popcountll(all & ~free_bits(&fixture)), 1);
    assert_true(drain_next_span(&fixture.drain, false, &span));
    assert_int_equal(span.count, 1);
    assert_int_equal(span.words, 5);
    close_fixture(&fixture);
}

/* What is no event ends its chunk; those behind it are read. */
static void damage_costs_the_rest_of_a_chunk(void **state) {
    static const uint64_t ends[][2] = {
        {0, 0},                                                      /* no kind */
        {15, 0},                                                     /* no kind yet */
        {MEMTRACE_WORD_REALLOC | 1u << 16, MEMTRACE_WORD_LOST},      /* before no allocation */
        {MEMTRACE_WORD_LOST, MEMTRACE_WORD_ALLOC},                   /* cut off */
        {MEMTRACE_WORD_LOST, MEMTRACE_WORD_MAP},                     /* cut off */
        {MEMTRACE_WORD_LOST, MEMTRACE_WORD_FREE_AT},                 /* cut off */
        {MEMTRACE_WORD_LOST, MEMTRACE_WORD_WEIGHT},                  /* before nothing */
        {MEMTRACE_WORD_LOST, MEMTRACE_WORD_MARK | UINT64_C(9) << 8}, /* a text past the end */
    };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct fixture fixture = open_fixture();
        struct region_writer writer = region_writer_start(fixture.build, 7);
        struct drain_span span = {0};
        struct drain_cursor cursor;
        struct event event;
        uint64_t marks = 0;
        put_marks(&writer, 0, MEMTRACE_CHUNK_WORDS);
        memcpy(&writer.chunk->word[MEMTRACE_CHUNK_WORDS - 2], ends[i], sizeof ends[i]);
        put_marks(&writer, 0, 3);
        assert_int_equal(drain_look(&fixture.drain), 0);
        assert_true(drain_next_span(&fixture.drain, false, &span));
        drain_start(&fixture.drain, &span, &cursor);
        while (drain_next(&cursor, &event) == 1) {
            marks += event.kind == EVENT_MARK;
        }
        assert_int_equal(marks, MEMTRACE_CHUNK_WORDS - 2 + 3);
        assert_int_equal(fixture.drain.damaged, 1);
        close_fixture(&fixture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_comes_back_when_all_of_it_is_committed),
        cmocka_unit_test(what_lies_behind_a_gap_waits),
        cmocka_unit_test(a_chunk_is_read_as_it_is_now),
        cmocka_unit_test(a_dead_collectors_chunk_comes_back),
        cmocka_unit_test(damage_costs_the_rest_of_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
