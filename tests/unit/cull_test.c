/* SPDX-License-Identifier: MIT */
/* cull_test.c: what lives too short is left out of a recording, both ends, and its totals are kept.
 */
#include "analyze/read/recording.h"
#include "collect/record.h"
#include "tests/unit/region_build.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CULL_NS = 100, CULL_BLOCKS = 20000 };

static void put_alloc(struct region_writer *writer, uint64_t time_ns, struct event_block old) {
    struct event event = {.kind = EVENT_ALLOC,
                          .time_ns = time_ns,
                          .context = 4 + (uint32_t)(writer->number % 3),
                          .size = 16 + writer->number % 7,
                          .address = 0x10000 + writer->number * 32,
                          .old = old,
                          .block = {.number = writer->number, .thread = writer->thread}};
    region_write(writer, &event);
}

static void put_free(struct region_writer *writer, uint64_t time_ns, uint32_t thread,
                     uint64_t number) {
    struct event event = {
        .kind = EVENT_FREE, .time_ns = time_ns, .block = {.number = number, .thread = thread}};
    region_write(writer, &event);
}

enum { COARSE_CULL_MS = 100 };

/* By coarse times, of which each may be a timer interrupt early; the last block was freed by a
 * thread whose clock was behind. */
static void write_coarse(struct region_build *build) {
    static const int64_t lives_ms[] = {60, 95, 100, 300, -2};
    struct region_writer writer = region_writer_start(build, 12);
    for (size_t i = 0; i < sizeof lives_ms / sizeof lives_ms[0]; i++) {
        uint64_t born_ms = 1000 * (i + 1);
        put_alloc(&writer, born_ms * 1000000, (struct event_block){0});
        put_free(&writer, (born_ms + (uint64_t)lives_ms[i]) * 1000000, 12, i + 1);
    }
}

/* One thread allocates, others free: the even ones at once, the odd ones late. What one of them
 * wrote is decided before the allocations are, what the other wrote, after. */
static void write_pairs(struct region_build *build) {
    struct region_writer before = region_writer_start(build, 9);
    struct region_writer first = region_writer_start(build, 10);
    struct region_writer after = region_writer_start(build, 11);
    for (uint64_t i = 1; i <= CULL_BLOCKS; i++) {
        put_alloc(&first, i * 1000, (struct event_block){0});
    }
    for (uint64_t i = 2; i <= CULL_BLOCKS; i += 2) {
        put_free(i % 4 == 0 ? &before : &after, i * 1000 + CULL_NS - 1, 10, i);
    }
    for (uint64_t i = 1; i <= CULL_BLOCKS; i += 2) {
        put_free(i % 4 == 1 ? &before : &after, (i + CULL_BLOCKS) * 1000, 10, i);
    }
}

/* 1 becomes 2 soon, 2 lives long; 3 lives long and becomes 4, which ends soon; 5, 6 and 7 follow
 * each other soon and end before the time is over; 8 lives just too long. */
static void write_chains(struct region_build *build) {
    struct region_writer writer = region_writer_start(build, 12);
    put_alloc(&writer, 1000, (struct event_block){0});
    put_alloc(&writer, 1010, (struct event_block){1, 12});
    put_free(&writer, 5000, 12, 2);
    put_alloc(&writer, 6000, (struct event_block){0});
    put_alloc(&writer, 7000, (struct event_block){3, 12});
    put_free(&writer, 7010, 12, 4);
    put_alloc(&writer, 8000, (struct event_block){0});
    put_alloc(&writer, 8010, (struct event_block){5, 12});
    put_alloc(&writer, 8020, (struct event_block){6, 12});
    put_free(&writer, 8030, 12, 7);
    put_alloc(&writer, 9000, (struct event_block){0});
    put_free(&writer, 9000 + CULL_NS, 12, 8);
}

struct culled_check {
    uint64_t allocs[13]; /* by thread */
    uint64_t frees[13];
    uint64_t culled;
    uint64_t culled_bytes;
    char chain[64];
};

static void check_kept(struct culled_check *check, const struct event *event) {
    uint32_t thread = event->block.thread;
    size_t length = strlen(check->chain);
    assert_uint_in_range(thread, 10, 12);
    if (thread == 10) {
        assert_int_equal(event->block.number % 2, 1);
    } else if (event->kind == EVENT_ALLOC && event->old.number != 0) {
        snprintf(check->chain + length, sizeof check->chain - length, "%llu>%llu ",
                 (unsigned long long)event->old.number, (unsigned long long)event->block.number);
    } else {
        snprintf(check->chain + length, sizeof check->chain - length, "%c%llu ",
                 event->kind == EVENT_ALLOC ? '+' : '-', (unsigned long long)event->block.number);
    }
    check->allocs[thread] += event->kind == EVENT_ALLOC;
    check->frees[thread] += event->kind == EVENT_FREE;
}

static void check_culled_file(const char *path, struct culled_check *check) {
    struct recording *recording = recording_open(path, NULL);
    struct recording_buffer buffer = {0};
    assert_non_null(recording);
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        assert_int_equal(recording_payload(recording, i, &buffer, NULL), 0);
        if (block->kind == MEMTRACE_BLOCK_CULLED) {
            const struct memtrace_culled *culled = (const void *)buffer.bytes;
            for (uint32_t item = 0; item < block->items; item++) {
                assert_uint_in_range(culled[item].context, 4, 6);
                check->culled += culled[item].count;
                check->culled_bytes += culled[item].bytes;
            }
        } else if (block->kind == MEMTRACE_BLOCK_EVENTS) {
            struct event_decoder decoder;
            struct event event;
            assert_int_equal(event_decoder_start(&decoder, block, buffer.bytes, buffer.size), 0);
            while (event_decoder_next(&decoder, &event) == 1) {
                check_kept(check, &event);
            }
            event_decoder_end(&decoder);
        }
    }
    recording_buffer_free(&buffer);
    recording_close(recording);
}

static void what_may_have_lived_long_is_kept(void **state) {
    struct region_build *build = region_build_new(4, 0);
    struct claim claim;
    struct record_result result;
    struct record *record;
    struct culled_check check = {0};
    (void)state;
    assert_int_equal(claim_open(build->path, &claim, NULL), CLAIM_OK);
    build->recording->cull_ns = UINT64_C(1000000) * COARSE_CULL_MS;
    write_coarse(build);
    record = record_open(&claim, NULL);
    assert_non_null(record);
    record_finish(record, &result);
    check_culled_file(build->output, &check);
    assert_string_equal(check.chain, "+2 -2 +3 -3 +4 -4 ");
    claim_release(&claim);
    region_build_free(build);
}

static void short_lives_are_left_out(void **state) {
    struct region_build *build = region_build_new(4, MEMTRACE_RECORDING_PRECISE);
    struct claim claim;
    struct record *record;
    struct record_result result;
    struct culled_check check = {0};
    uint64_t bytes = 0;
    (void)state;
    assert_int_equal(claim_open(build->path, &claim, NULL), CLAIM_OK);
    build->recording->cull_ns = CULL_NS;
    write_pairs(build);
    write_chains(build);
    record = record_open(&claim, NULL);
    assert_non_null(record);
    record_finish(record, &result);
    check_culled_file(build->output, &check);
    for (uint64_t i = 2; i <= CULL_BLOCKS; i += 2) {
        bytes += 16 + i % 7;
    }
    for (uint64_t i = 5; i <= 7; i++) {
        bytes += 16 + i % 7;
    }
    assert_int_equal(check.allocs[10], CULL_BLOCKS / 2);
    assert_int_equal(check.frees[10], CULL_BLOCKS / 2);
    assert_string_equal(check.chain, "+1 1>2 -2 +3 3>4 -4 +8 -8 ");
    assert_int_equal(check.culled, CULL_BLOCKS / 2 + 3);
    assert_int_equal(check.culled_bytes, bytes);
    claim_release(&claim);
    region_build_free(build);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_lives_are_left_out),
        cmocka_unit_test(what_may_have_lived_long_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
