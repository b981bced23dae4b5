/* SPDX-License-Identifier: MIT */
/* Tests of runtime/record/recorder.c: what one thread writes, however full the buffers are. */
#include "tests/unit/recorder_fixture.h"

#include <pthread.h>

/* --- one thread ------------------------------------------------------------------------------- */

static void words_say_what_was_meant(void **state) {
    struct recorder_stream stream;
    struct recorder_alloc event = {.address = 0x7fff12345670,
                                   .size = (UINT64_C(1) << 40) + 5,
                                   .replaces = recorder_name(9, 0x123456789abc),
                                   .context = 0xabcdef,
                                   .slack = 9000,
                                   .flags = MEMTRACE_ALLOC_ZEROED,
                                   .alignment = 12};
    const struct recorder_map map = {MEMTRACE_MAP_REMAP, 77, 3, 34, 4096, 8192, 12288, 16384};
    const uint64_t *word;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(recorder_alloc(&stream, &event), 1);
    assert_int_equal(recorder_free(&stream, recorder_name(3, 1), 0), 1);
    assert_int_equal(recorder_free(&stream, recorder_name(3, 2), 99), 1);
    assert_int_equal(recorder_map(&stream, &map), 1);
    assert_int_equal(recorder_mark(&stream, MEMTRACE_MARK_POINT, 42, "a mark", 6), 1);
    word = stream.chunk->word;
    assert_int_equal(stream.chunk->used, 4 + 1 + 2 + 5 + 2);
    assert_int_equal(stream.chunk->thread, 3);
    assert_int_equal(stream.chunk->first_number, 1);
    assert_int_equal(word[0], MEMTRACE_WORD_EXTRA | 12 << 4 | (UINT64_C(1) << 4) << 10);
    assert_int_equal(word[1], MEMTRACE_WORD_REALLOC | 9 << 4 | UINT64_C(0x123456789abc) << 16);
    assert_int_equal(word[2], MEMTRACE_WORD_ALLOC | 0xabcdef0 | UINT64_C(5) << 28);
    assert_int_equal(word[3], UINT64_C(0x7fff12345670) | (uint64_t)MEMTRACE_SLACK_MOST << 48 |
                                  (uint64_t)MEMTRACE_ALLOC_ZEROED << 60);
    assert_int_equal(word[4], MEMTRACE_WORD_FREE | 3 << 4 | 1 << 16);
    assert_int_equal(word[5], MEMTRACE_WORD_FREE_AT | 3 << 4 | 2 << 16);
    assert_int_equal(word[6], 99);
    assert_int_equal(word[7], MEMTRACE_WORD_MAP | MEMTRACE_MAP_REMAP << 4 | 3 << 8 | 34 << 16 |
                                  UINT64_C(77) << 24);
    assert_int_equal(word[9], 8192);
    assert_int_equal(word[11], 16384);
    assert_int_equal(word[12],
                     MEMTRACE_WORD_MARK | MEMTRACE_MARK_POINT << 4 | 6 << 8 | UINT64_C(42) << 24);
    assert_memory_equal(&word[13], "a mark\0", 8);
}

static void times_come_before_events(void **state) {
    struct recorder_stream stream;
    struct recorder_stream precise;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    alloc(&stream, 32, 1);
    recorder_set_time(&stream, 123456789, 29);
    alloc(&stream, 64, 1);
    alloc(&stream, 96, 1);
    assert_int_equal(stream.chunk->word[2], MEMTRACE_WORD_TIME | UINT64_C(123456789) << 4);
    assert_int_equal(stream.chunk->used, 7);
    recording->flags = MEMTRACE_RECORDING_PRECISE;
    recorder_join(&recorder, &precise, 4);
    for (uint64_t i = 0, last = 0; i < 100; i++) {
        alloc(&precise, 32, 1);
        assert_int_equal(precise.chunk->word[3 * i] & 15, MEMTRACE_WORD_TIME);
        assert_true(precise.chunk->word[3 * i] >> 4 > last);
        last = precise.chunk->word[3 * i] >> 4;
    }
}

static void chunks_follow_each_other(void **state) {
    struct recorder_stream stream;
    const struct memtrace_chunk *last = NULL;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    for (uint64_t i = 1; i <= EVENTS_IN_CHUNK * 70; i++) {
        assert_int_equal(alloc(&stream, i, 1), i);
    }
    for (uint32_t sequence = 0; sequence < 70; sequence++) {
        const struct memtrace_chunk *chunk = find_chunk(1, sequence);
        assert_non_null(chunk);
        assert_int_equal(chunk->first_number, 1 + sequence * EVENTS_IN_CHUNK);
        assert_int_equal(chunk->used, EVENTS_IN_CHUNK * EVENT_WORDS);
        assert_int_equal(chunk->state, sequence < 69 ? MEMTRACE_CHUNK_FULL : MEMTRACE_CHUNK_OPEN);
        last = chunk;
    }
    assert_null(find_chunk(1, 70));
    recorder_leave(&stream);
    assert_int_equal(last->state, MEMTRACE_CHUNK_FULL);
    assert_int_equal(recording->stream_count, 1);
}

/* What a longjmp out of a handler left behind: published or not, it is not written over. */
static void an_abandoned_event_is_left(void **state) {
    struct recorder_stream stream;
    const struct memtrace_chunk *first;
    uint64_t number;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    alloc(&stream, 32, 1);
    first = stream.chunk;
    stream.number--; /* as if it had been left before the number was counted */
    recorder_abandon(&stream);
    assert_int_equal(first->state, MEMTRACE_CHUNK_FULL);
    assert_int_equal(first->used, 2);
    number = alloc(&stream, 64, 1);
    assert_int_equal(number, 2);
    assert_int_equal(stream.chunk->first_number, 2);
    assert_int_equal(stream.chunk->sequence, 1);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void numbers_outgrow_their_low_half(void **state) {
    const uint64_t half = UINT64_C(1) << 32;
    struct recorder_stream stream;
    uint32_t used;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    stream.number = half - 1;
    recorder_set_time(&stream, UINT64_C(100) << MEMTRACE_TICK_SHIFT, 100);
    assert_int_equal(alloc(&stream, 32, 1), half - 1);
    used = stream.used;
    assert_int_equal(alloc(&stream, 32, 1), half + 1);
    assert_int_equal(stream.chunk->word[used], MEMTRACE_WORD_NUMBERS | (half + 1) << 4);
    assert_int_equal(alloc(&stream, 32, 1), half + 2);
    assert_int_equal(recorder_number(&recorder, 3, UINT32_MAX, 100), half - 1);
    assert_int_equal(recorder_number(&recorder, 3, 1, 100), half + 1);
    assert_int_equal(recorder_number(&recorder, 3, 77, 99), 77);
    assert_int_equal(recorder_number(&recorder, 3, UINT32_MAX, 101), half + UINT32_MAX);
    assert_int_equal(recorder_number(&recorder, 4, 77, 200), 77);
    stream.number = stream.numbers_end;
    recorder_set_time(&stream, UINT64_C(300) << MEMTRACE_TICK_SHIFT, 300);
    assert_int_equal(alloc(&stream, 32, 1), 2 * half + 1);
    assert_int_equal(recorder_number(&recorder, 3, 5, 300), 2 * half + 5);
    assert_int_equal(recorder_number(&recorder, 3, 5, 299), half + 5);
    assert_int_equal(recorder_number(&recorder, 3, 5, 99), 5);
}

/* Two blocks never have the same name, whoever had the id before. */
static void numbers_go_on_within_an_id(void **state) {
    const uint64_t half = UINT64_C(1) << 32;
    struct recorder_stream stream;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(alloc(&stream, 32, 1), 1);
    assert_int_equal(alloc(&stream, 32, 1), 2);
    recorder_leave(&stream);
    recorder_join(&recorder, &stream, 4);
    assert_int_equal(alloc(&stream, 32, 1), 1);
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(alloc(&stream, 32, 1), 3);
    stream.number = half;
    recorder_leave(&stream);
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(alloc(&stream, 32, 1), half + 1); /* none has a low half of 0 */
    recorder_leave(&stream);
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(alloc(&stream, 32, 1), half + 2);
    assert_int_equal(stream.numbers_end, 2 * half);
    recorder_leave(&stream);
}

static void others_share_their_numbers(void **state) {
    struct recorder_stream streams[3];
    static unsigned char seen[3001];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        recorder_join(&recorder, &streams[i], MEMTRACE_THREAD_OTHERS);
    }
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < 3000; i++) {
        struct recorder_stream *stream = &streams[i * 7 % 3];
        uint64_t number = alloc(stream, 32, 1);
        const struct memtrace_chunk *chunk = stream->chunk;
        assert_true(number >= 1 && number < 3200);
        if (number <= 3000) {
            assert_int_equal(seen[number]++, 0);
        }
        /* The position gives the same number: the last NUMBERS and the allocations behind it. */
        uint64_t told = chunk->first_number;
        for (uint32_t at = 0; at < chunk->used; at += length_of(&chunk->word[at])) {
            if ((chunk->word[at] & 15) == MEMTRACE_WORD_NUMBERS) {
                told = chunk->word[at] >> 4;
            }
            told += (chunk->word[at] & 15) == MEMTRACE_WORD_ALLOC;
        }
        assert_int_equal(told, number + 1);
    }
    recorder.others = (UINT64_C(1) << 32) - 65; /* the last run */
    recorder_leave(&streams[0]);
    recorder_join(&recorder, &streams[0], MEMTRACE_THREAD_OTHERS);
    assert_int_equal(alloc(&streams[0], 32, 1), (UINT64_C(1) << 32) - 64);
    streams[0].number = streams[0].numbers_end;
    assert_int_equal(alloc(&streams[0], 32, 1), 0);
}

/* --- lag -------------------------------------------------------------------------------------- */

static uint64_t fill_up(struct recorder_stream *stream) {
    uint64_t count = 0;
    while (alloc(stream, 32, 1) != 0) {
        count++;
    }
    return count;
}

static void losses_are_told_once_there_is_room(void **state) {
    struct recorder_stream stream;
    struct memtrace_chunk *chunk;
    (void)state;
    recording->on_lag = MEMTRACE_LAG_DROP;
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(fill_up(&stream),
                     EVENTS_IN_CHUNK * MEMTRACE_CHUNK_SEGMENTS * (MEMTRACE_CHUNKS_PER_SEGMENT - 1));
    assert_int_equal(recorder_may_wait(&recorder), 0);
    for (int i = 0; i < 10; i++) {
        recorder_lost(&stream, 1, i % 2);
    }
    assert_int_equal(recording->lost_allocs, 10);
    assert_int_equal(recording->lost_frees, 5);
    assert_int_equal(recorder.space->header->lost[MEMTRACE_LOST_RECORDS], 15);
    chunk = find_chunk(1, 5);
    give_back((uint32_t)(chunk - recorder.segment[0])); /* of the first segment */
    assert_int_not_equal(alloc(&stream, 32, 1), 0);
    assert_ptr_equal(stream.chunk, chunk);
    assert_int_equal(chunk->word[0], MEMTRACE_WORD_LOST | 10 << 4 | UINT64_C(5) << 34);
    assert_int_equal(chunk->used, 3);
    alloc(&stream, 32, 1);
    assert_int_equal(chunk->used, 5);
    /* What comes after the end is not lost. */
    recording->state = MEMTRACE_RECORD_STOPPED;
    recorder_lost(&stream, 1, 0);
    assert_int_equal(recording->lost_allocs, 10);
}

static unsigned thinned(void) {
    return recording->flags >> MEMTRACE_RECORDING_THIN_SHIFT;
}

/* Doubled when half of the buffers are taken, and then with each eighth of those that are left. */
static void thins_before_the_last_buffer_is_taken(void **state) {
    const uint32_t whole = MEMTRACE_CHUNK_SEGMENTS * (MEMTRACE_CHUNKS_PER_SEGMENT - 1);
    struct recorder_stream stream;
    uint32_t then = whole;
    unsigned expected = 0;
    (void)state;
    recording->on_lag = MEMTRACE_LAG_THIN;
    recorder_join(&recorder, &stream, 3);
    for (uint32_t left = whole; left-- > 0;) {
        assert_int_equal(recorder_claim(&stream), 1);
        if (left < whole / 2 && (expected == 0 || left < then - then / 8)) {
            expected = expected == 0 ? MEMTRACE_THIN_FIRST : expected + 1;
            expected = expected < MEMTRACE_THIN_LAST ? expected : MEMTRACE_THIN_LAST;
            then = left;
        }
        assert_int_equal(thinned(), expected);
        if (expected == MEMTRACE_THIN_FIRST) {
            assert_int_equal(memtrace_distance(recording), 256);
        }
    }
    assert_int_equal(expected, MEMTRACE_THIN_LAST);
    assert_true((recording->flags & MEMTRACE_RECORDING_THINNED) != 0);
    assert_int_equal(recorder_claim(&stream), 0);
}

static void thins_again_when_some_came_back(void **state) {
    const uint32_t whole = MEMTRACE_CHUNK_SEGMENTS * (MEMTRACE_CHUNKS_PER_SEGMENT - 1);
    struct recorder_stream stream;
    (void)state;
    recording->on_lag = MEMTRACE_LAG_THIN;
    recorder_join(&recorder, &stream, 3);
    for (uint32_t i = 0; i < whole / 2 + whole / 4; i++) {
        recorder_claim(&stream);
    }
    unsigned before = thinned();
    assert_true(before > MEMTRACE_THIN_FIRST);
    for (uint32_t i = 1; i <= whole / 8; i++) { /* a part of the first ones, which are full */
        give_back(i / (MEMTRACE_CHUNKS_PER_SEGMENT - 1) * MEMTRACE_CHUNKS_PER_SEGMENT +
                  i % (MEMTRACE_CHUNKS_PER_SEGMENT - 1) + 1);
    }
    recorder_claim(&stream);
    assert_int_equal(thinned(), before); /* from there on: an eighth of what is left now */
    for (uint32_t i = 0; i < whole / 4; i++) {
        recorder_claim(&stream);
    }
    assert_true(thinned() > before);
}

/* Never less than was chosen, and back to that. */
static void what_was_chosen_is_the_least(void **state) {
    (void)state;
    recording->sample_bytes = 1000;
    assert_int_equal(memtrace_distance(recording), 1000);
    memtrace_thin(recording, 1);
    assert_int_equal(memtrace_distance(recording), 1024);
    memtrace_thin(recording, 1);
    assert_int_equal(memtrace_distance(recording), 2048);
    recording->sample_bytes = 4000; /* by the program, meanwhile */
    assert_int_equal(memtrace_distance(recording), 4000);
    memtrace_thin(recording, 1);
    assert_int_equal(memtrace_distance(recording), 4096);
    memtrace_thin(recording, 0);
    assert_int_equal(memtrace_distance(recording), 4000);
    assert_int_equal(thinned(), 0);
    recording->sample_bytes = 0;
    for (int i = 0; i < 100; i++) {
        memtrace_thin(recording, 1);
    }
    assert_int_equal(memtrace_distance(recording), 64 << 20);
}

static void others_are_not_thinned(void **state) {
    struct recorder_stream stream;
    (void)state;
    recording->on_lag = MEMTRACE_LAG_WAIT;
    recorder_join(&recorder, &stream, 3);
    fill_up(&stream);
    assert_int_equal(recording->flags, 0);
}

/* A region that cannot grow: nobody waits for chunks that cannot be, or asks again and again. */
static void nothing_is_recorded_without_chunks(void **state) {
    struct recorder_stream stream;
    (void)state;
    recording->heartbeat_ns = now_ns();
    recorder.space->room.most = MEMTRACE_HEADER_SIZE; /* as with a small RLIMIT_FSIZE */
    recorder_join(&recorder, &stream, 3);
    assert_int_equal(alloc(&stream, 32, 1), 0);
    assert_int_equal(recorder_may_wait(&recorder), 0);
    assert_int_equal(recorder.most_segments, 0);
    recorder_lost(&stream, 1, 0);
    assert_int_equal(recording->lost_allocs, 1);
    assert_null(stream.chunk);
}

static void *give_back_late(void *argument) {
    usleep(50000);
    give_back(*(uint32_t *)argument);
    return NULL;
}

static void waits_while_the_heart_beats(void **state) {
    struct recorder_stream stream;
    uint32_t some = 40;
    uint64_t before;
    pthread_t thread;
    (void)state;
    recorder_join(&recorder, &stream, 3);
    fill_up(&stream);
    recording->heartbeat_ns = now_ns() + UINT64_C(10000000000);
    pthread_create(&thread, NULL, give_back_late, &some);
    assert_int_equal(recorder_may_wait(&recorder), 1);
    assert_int_equal(recorder_wait(&stream), 1);
    assert_ptr_equal(stream.chunk, chunk_at(some));
    pthread_join(thread, NULL);
    /* Nobody waits for a collector that is gone, or that beats and does nothing, for long. */
    fill_up(&stream);
    recording->heartbeat_ns = now_ns() - UINT64_C(10000000000);
    assert_int_equal(recorder_may_wait(&recorder), 0);
    recording->heartbeat_ns = now_ns() + UINT64_C(10000000000);
    before = now_ns();
    assert_int_equal(recorder_wait(&stream), 0);
    assert_true(now_ns() - before >= 900000000);
    assert_int_equal(recorder_may_wait(&recorder), 0);
    /* Until there is room again. */
    give_back(some);
    assert_int_not_equal(alloc(&stream, 32, 1), 0);
    assert_int_equal(recorder_may_wait(&recorder), 1);
    /* One that was started has some seconds to come. */
    recording->heartbeat_ns = 0;
    recorder.space->header->start_monotonic_ns = now_ns() + UINT64_C(10000000000);
    assert_int_equal(recorder_may_wait(&recorder), 1);
    recorder.space->header->start_monotonic_ns -= UINT64_C(20000000000);
    assert_int_equal(recorder_may_wait(&recorder), 0);
    recorder.space->header->start_monotonic_ns += UINT64_C(10000000000);
    recorder.space->header->flags |= MEMTRACE_FLAG_FORKED;
    assert_int_equal(recorder_may_wait(&recorder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_say_what_was_meant),
        TEST(times_come_before_events),
        TEST(chunks_follow_each_other),
        TEST(an_abandoned_event_is_left),
        TEST(numbers_outgrow_their_low_half),
        TEST(numbers_go_on_within_an_id),
        TEST(others_share_their_numbers),
        TEST(losses_are_told_once_there_is_room),
        TEST(thins_before_the_last_buffer_is_taken),
        TEST(thins_again_when_some_came_back),
        TEST(what_was_chosen_is_the_least),
        TEST(others_are_not_thinned),
        TEST(nothing_is_recorded_without_chunks),
        TEST(waits_while_the_heart_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
