/* SPDX-License-Identifier: MIT */
/* eventcode_test.c: analyze/read/eventencode.c and eventdecode.c: what goes in comes out, and
 * whatever else comes in does no harm. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/read/eventcode.h"
#include "tests/unit/event_same.h"
#include "tests/unit/event_stream.h"

#include <stdlib.h>

/* A copy of exactly these bytes, so that a sanitizer sees each one read beyond them. */
static void *exact_copy(const void *bytes, size_t size) {
    void *copy = malloc(size != 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

enum { FILLED = 7, KNOWN = 1 << MEMTRACE_THREAD_BITS };

/* What event_decoder_fill() says of the events it goes on behind. */
static bool may_be_passed(const struct event *event, uint64_t last_ns, const uint64_t *known,
                          uint32_t thread) {
    const struct event_block *ended = event->kind == EVENT_FREE ? &event->block : &event->old;
    bool is_block = event->kind == EVENT_ALLOC || event->kind == EVENT_FREE;
    return is_block && event->time_ns <= last_ns &&
           (ended->number == 0 || ended->thread == thread ||
            ended->number <= known[ended->thread % KNOWN]);
}

/* The same several at a time, no further than some time and some numbers of each thread. */
static void check_filled(const struct memtrace_block_header *block, const void *payload,
                         size_t size, const struct event *events, size_t count) {
    struct event_decoder decoder;
    struct event filled[FILLED][2]; /* every other one: they need not lie side by side */
    uint64_t *known = calloc(KNOWN, sizeof *known);
    struct event_decoder_stop stop = {.last_ns = UINT64_MAX, .known = known};
    size_t found = 0;
    size_t at = 0;
    assert_non_null(known);
    for (size_t i = 0; i < KNOWN; i++) {
        known[i] = i % 2 ? UINT64_MAX : 100;
    }
    assert_int_equal(event_decoder_start(&decoder, block, payload, size), 0);
    for (; at < count; at += found) {
        size_t most = 1 + at % FILLED;
        int result;
        stop.last_ns = at % 3 ? events[at].time_ns : UINT64_MAX;
        result = event_decoder_fill(&decoder, &stop, filled[0], sizeof filled[0], most, &found);
        assert_uint_in_range(found, 1, most);
        for (size_t i = 0; i < found; i++) {
            bool is_passed = may_be_passed(&events[at + i], stop.last_ns, known, block->thread);
            assert_same(&filled[i][0], &events[at + i]);
            assert_true(is_passed || i == found - 1);
            assert_true(!is_passed || i < found - 1 || found == most || at + found == count);
        }
        assert_int_equal(
            result, at + found < count || found == most ||
                        !may_be_passed(&events[count - 1], stop.last_ns, known, block->thread));
    }
    assert_int_equal(event_decoder_fill(&decoder, &stop, filled[0], sizeof filled[0], 1, &found),
                     0);
    assert_int_equal(found, 0);
    event_decoder_end(&decoder);
    free(known);
}

/* The events come back as they were. */
static void check_decoded(const struct memtrace_block_header *block, const void *payload,
                          size_t size, const struct event *events, size_t count) {
    struct event_decoder decoder;
    struct event event;
    void *copy = exact_copy(payload, size);
    assert_int_equal(event_decoder_start(&decoder, block, copy, size), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(event_decoder_next(&decoder, &event), 1);
        assert_same(&event, &events[i]);
    }
    assert_int_equal(event_decoder_next(&decoder, &event), 0);
    assert_int_equal(event_decoder_next(&decoder, &event), 0);
    event_decoder_end(&decoder);
    check_filled(block, copy, size, events, count);
    free(copy);
}

/* Reads until the end or the first damage. Returns the number of events. */
static size_t drain(const struct memtrace_block_header *block, const void *payload, size_t size) {
    struct event_decoder decoder;
    struct event event;
    size_t count = 0;
    unsigned sum = 0;
    int result;
    if (event_decoder_start(&decoder, block, payload, size) != 0) {
        assert_true(decoder.error[0] != '\0');
        return 0;
    }
    while ((result = event_decoder_next(&decoder, &event)) == 1) {
        for (size_t i = 0; event.kind == EVENT_MARK && i < event.text_size; i++) {
            sum += (unsigned char)event.text[i];
        }
        count++;
    }
    assert_true(result == 0 || decoder.error[0] != '\0');
    assert_true(sum < UINT32_MAX);
    event_decoder_end(&decoder);
    return count;
}

struct expected {
    uint32_t allocs;
    uint32_t frees;
    uint64_t first_ns;
    uint64_t last_ns;
};

static void expect(struct expected *expected, const struct event *event) {
    expected->allocs += event->kind == EVENT_ALLOC;
    expected->frees +=
        event->kind == EVENT_FREE || (event->kind == EVENT_ALLOC && event->old.number != 0);
    expected->first_ns = event->time_ns < expected->first_ns ? event->time_ns : expected->first_ns;
    expected->last_ns = event->time_ns > expected->last_ns ? event->time_ns : expected->last_ns;
}

/* Blocks of the stream through one encoder, one after the other. */
static void round_trip(struct stream *stream, uint32_t flags, size_t blocks, size_t count) {
    struct event_encoder *encoder = event_encoder_new(flags);
    struct event *events = calloc(count + 1, sizeof *events);
    assert_non_null(encoder);
    assert_non_null(events);
    for (size_t i = 0; i < blocks; i++) {
        struct memtrace_block_header block = {0};
        struct expected expected = {.first_ns = UINT64_MAX};
        uint64_t first_number = stream->number + 1;
        size_t size;
        const void *payload;
        event_encoder_start(encoder, stream->thread, first_number);
        for (size_t k = 0; k < count; k++) {
            stream_next(stream, &events[k]);
            assert_int_equal(event_encoder_add(encoder, &events[k]), 0);
            expect(&expected, &events[k]);
            if (flags & MEMTRACE_RECORDING_NO_ADDRESSES && events[k].kind == EVENT_ALLOC) {
                events[k].address = 0;
            }
        }
        assert_int_equal(event_encoder_count(encoder), count);
        payload = event_encoder_finish(encoder, &size, &block);
        assert_non_null(payload);
        assert_true(size <= event_encoder_bytes(encoder));
        assert_int_equal(block.items, count);
        assert_int_equal(block.allocs, expected.allocs);
        assert_int_equal(block.frees, expected.frees);
        assert_int_equal(block.first_number, first_number);
        assert_int_equal(block.thread, stream->thread);
        if (count != 0) {
            assert_int_equal(block.first_ns, expected.first_ns);
            assert_int_equal(block.last_ns, expected.last_ns);
        }
        check_decoded(&block, payload, size, events, count);
    }
    free(events);
    event_encoder_free(encoder);
}

static void random_streams(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct stream stream = stream_start(seed, 3, seed % 7 == 0 ? UINT64_C(1) << 47 : seed);
        stream.precise = seed % 3 == 0;
        stream.wild = seed % 2 == 0;
        stream.addresses = seed % 5 != 0;
        round_trip(&stream, seed % 11 == 0 ? MEMTRACE_RECORDING_NO_ADDRESSES : 0, 3,
                   (size_t)(seed % 20 == 0 ? 5000 : seed));
    }
}

/* Blocks of very many and of few sites in turn share one encoder. */
static void many_and_few_sites(void **state) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct event *events = calloc(40000, sizeof *events);
    (void)state;
    for (int round = 0; round < 12; round++) {
        size_t count = round % 4 == 0 ? 40000 : 300;
        struct memtrace_block_header block = {0};
        size_t size;
        const void *payload;
        event_encoder_start(encoder, 5, 1);
        for (size_t i = 0; i < count; i++) {
            events[i] = (struct event){.kind = EVENT_ALLOC,
                                       .context = (uint32_t)(i * 7 % (count - 1)),
                                       .size = i % 3,
                                       .slack = 24 - i % 3,
                                       .block = {.number = i + 1, .thread = 5}};
            assert_int_equal(event_encoder_add(encoder, &events[i]), 0);
        }
        payload = event_encoder_finish(encoder, &size, &block);
        check_decoded(&block, payload, size, events, count);
    }
    free(events);
    event_encoder_free(encoder);
}

static void no_events(void **state) {
    struct stream stream = stream_start(1, 3, 1);
    (void)state;
    round_trip(&stream, 0, 2, 0);
}

/* One event of each kind, every field at its end. */
static void extremes(void **state) {
    static const struct event events[] = {
        {.kind = EVENT_ALLOC,
         .context = UINT32_MAX,
         .time_ns = UINT64_MAX,
         .block = {.number = 1, .thread = 9},
         .old = {.number = UINT64_MAX, .thread = 4095},
         .address = (UINT64_C(1) << 48) - 1,
         .size = UINT64_MAX,
         .weight = UINT64_MAX,
         .slack = MEMTRACE_SLACK_MOST,
         .flags = UINT8_MAX,
         .alignment = UINT8_MAX},
        {.kind = EVENT_FREE, .block = {.number = UINT64_MAX, .thread = 9}, .context = UINT32_MAX},
        {.kind = EVENT_FREE, .block = {.number = 1, .thread = 9}, .time_ns = 1},
        {.kind = EVENT_FREE, .block = {.number = 1, .thread = 9}, .time_ns = 1},
        {.kind = EVENT_ALLOC, .block = {.number = UINT64_MAX, .thread = 9}},
        {.kind = EVENT_MAP,
         .operation = UINT8_MAX,
         .protection = UINT8_MAX,
         .flags = UINT8_MAX,
         .context = UINT32_MAX,
         .address = UINT64_MAX,
         .size = UINT64_MAX,
         .old_address = UINT64_MAX,
         .old_size = UINT64_MAX},
        {.kind = EVENT_MARK, .operation = UINT8_MAX, .id = UINT64_MAX, .text = "", .text_size = 1},
        {.kind = EVENT_LOST, .lost_allocs = UINT64_MAX, .lost_frees = UINT64_MAX},
    };
    size_t count = sizeof events / sizeof events[0];
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    size_t size;
    const void *payload;
    (void)state;
    event_encoder_start(encoder, 9, 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(event_encoder_add(encoder, &events[i]), 0);
    }
    payload = event_encoder_finish(encoder, &size, &block);
    check_decoded(&block, payload, size, events, count);
    event_encoder_free(encoder);
}

/* docs/format.md says so. */
static void documented_example(void **state) {
    static const unsigned char columns[] = {0x39, 0x60, 0xb8, 0x17, 0x0e, 0x18, 0x00, 0x84, 0x28};
    static const uint32_t sizes[13] = {2, 2, 0, 0, 1, 1, 1, 0, 0, 0, 2, 0, 0};
    static const struct event events[] = {
        {.kind = EVENT_ALLOC,
         .time_ns = 3000,
         .context = 7,
         .block = {.number = 1, .thread = 2},
         .address = 0x5010,
         .size = 24},
        {.kind = EVENT_FREE, .time_ns = 3000, .block = {.number = 1, .thread = 2}}};
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    size_t size;
    const unsigned char *payload;
    (void)state;
    event_encoder_start(encoder, 2, 1);
    assert_int_equal(event_encoder_add(encoder, &events[0]), 0);
    assert_int_equal(event_encoder_add(encoder, &events[1]), 0);
    payload = event_encoder_finish(encoder, &size, &block);
    assert_int_equal(size, sizeof sizes + sizeof columns);
    assert_memory_equal(payload, sizes, sizeof sizes);
    assert_memory_equal(payload + sizeof sizes, columns, sizeof columns);
    event_encoder_free(encoder);
}

/* More than a block can have is refused, and the block stays good. */
static void full_block(void **state) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    struct event event = {.kind = EVENT_LOST, .lost_allocs = 1};
    size_t size;
    const void *payload;
    (void)state;
    event_encoder_start(encoder, 2, 1);
    for (uint32_t i = 0; i < MEMTRACE_BLOCK_EVENTS_MOST; i++) {
        assert_int_equal(event_encoder_add(encoder, &event), 0);
    }
    assert_int_equal(event_encoder_add(encoder, &event), -1);
    payload = event_encoder_finish(encoder, &size, &block);
    assert_non_null(payload);
    assert_int_equal(drain(&block, payload, size), MEMTRACE_BLOCK_EVENTS_MOST);
    event_encoder_free(encoder);
}

static const void *example(struct event_encoder *encoder, uint64_t seed, size_t count,
                           struct memtrace_block_header *block, size_t *size) {
    struct stream stream = stream_start(seed, 3, 1);
    struct event event;
    event_encoder_start(encoder, 3, 1);
    for (size_t i = 0; i < count; i++) {
        stream_next(&stream, &event);
        assert_int_equal(event_encoder_add(encoder, &event), 0);
    }
    return event_encoder_finish(encoder, size, block);
}

static void cut_at_every_byte(void **state) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    size_t size;
    const void *payload = example(encoder, 5, 500, &block, &size);
    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        void *copy = exact_copy(payload, cut);
        assert_int_equal(drain(&block, copy, cut), 0);
        free(copy);
    }
    event_encoder_free(encoder);
}

static void damage_in_every_byte(void **state) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    size_t size;
    const void *payload = example(encoder, 6, 400, &block, &size);
    unsigned char *copy = exact_copy(payload, size);
    (void)state;
    for (size_t i = 0; i < size; i++) {
        for (unsigned flip = 1; flip < 256; flip = flip * 2 + 1) {
            copy[i] ^= (unsigned char)flip;
            assert_true(drain(&block, copy, size) <= block.items);
            copy[i] ^= (unsigned char)flip;
        }
    }
    assert_int_equal(drain(&block, copy, size), block.items);
    free(copy);
    event_encoder_free(encoder);
}

/* The header lies: more events than there are, and more than there can be. */
static void too_many_items(void **state) {
    struct event_encoder *encoder = event_encoder_new(0);
    struct memtrace_block_header block = {0};
    size_t size;
    const void *payload = example(encoder, 7, 100, &block, &size);
    (void)state;
    block.items = 101;
    assert_int_equal(drain(&block, payload, size), 100);
    block.items = UINT32_MAX;
    assert_int_equal(drain(&block, payload, size), 0);
    event_encoder_free(encoder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams),    cmocka_unit_test(many_and_few_sites),
        cmocka_unit_test(no_events),         cmocka_unit_test(extremes),
        cmocka_unit_test(full_block),        cmocka_unit_test(documented_example),
        cmocka_unit_test(cut_at_every_byte), cmocka_unit_test(damage_in_every_byte),
        cmocka_unit_test(too_many_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
