/* SPDX-License-Identifier: MIT */
/* heaphistory_test.c: analyze/blocks/heaphistory.c: blocks larger than any memory, as programs ask
 * for that use little of them, and as damaged files have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/blocks/heaphistory.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#define SMALL_AT   UINT64_C(0x10000000)
#define SMALL_SIZE UINT64_C(0x10000)
#define LARGE_AT   UINT64_C(0x100000000000)

static char path[] = "/tmp/memtrace-heaphistory-XXXXXX";

static struct recording *recording;
static struct model *whole;

/* A small block, then `count` large ones one behind the other. */
static void write_recording(uint64_t size, uint64_t count) {
    struct recording_build build = {0};
    struct event_encoder *encoder = event_encoder_new(0);
    struct event event = {.kind = EVENT_ALLOC,
                          .time_ns = 4000,
                          .context = 4,
                          .address = SMALL_AT,
                          .size = SMALL_SIZE,
                          .block = {1, 2}};
    assert_non_null(encoder);
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    event_encoder_start(encoder, 2, 1);
    assert_int_equal(event_encoder_add(encoder, &event), 0);
    for (uint64_t i = 0; i < count; i++) {
        event.time_ns += 4000;
        event.address = LARGE_AT + i * size;
        event.size = size;
        event.block.number++;
        assert_int_equal(event_encoder_add(encoder, &event), 0);
    }
    recording_build_encoded(&build, encoder, 1);
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    event_encoder_free(encoder);
    recording_build_free(&build);
}

static struct heaphistory *make(uint64_t size, uint64_t count) {
    struct error error = {""};
    struct timeorder_parts parts = {(const struct recording *const *)&recording, 1};
    struct heaphistory *history;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_recording(size, count);
    recording = recording_open(path, &error);
    assert_non_null(recording);
    whole = model_replay(parts, NULL, &error);
    assert_non_null(whole);
    history = heaphistory_make(whole, parts, 0, whole->now_ns + 1, NULL, &error);
    assert_non_null(history);
    return history;
}

static void drop(struct heaphistory *history) {
    heaphistory_free(history);
    model_free(whole);
    recording_close(recording);
    unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}

/* Whether a cell of the moment holds something of this address. */
static bool is_used(const struct heaphistory *history, const struct heaphistory_moment *moment,
                    uint64_t address) {
    for (size_t i = moment->first; i < moment->first + moment->count; i++) {
        if (history->cells[i].number == address / history->step) {
            return true;
        }
    }
    return false;
}

static void check(const struct heaphistory *history, uint64_t end) {
    const struct heaphistory_moment *last = &history->moments[history->count - 1];
    assert_true(history->cell_count <= HEAPHISTORY_CELLS);
    assert_true(is_used(history, last, SMALL_AT));
    assert_true(is_used(history, last, LARGE_AT));
    assert_true(is_used(history, last, end - 1));
    for (size_t i = last->first + 1; i < last->first + last->count; i++) {
        assert_true(history->cells[i - 1].number < history->cells[i].number);
    }
}

static void of_one_block(void **state) {
    struct heaphistory *history = make(UINT64_C(1) << 46, 1);
    (void)state;
    check(history, LARGE_AT + (UINT64_C(1) << 46));
    drop(history);
}

static void of_many_blocks(void **state) {
    struct heaphistory *history = make(UINT64_C(1) << 36, 500);
    (void)state;
    check(history, LARGE_AT + 500 * (UINT64_C(1) << 36));
    drop(history);
}

/* Up to where addresses end. */
static void of_a_damaged_size(void **state) {
    struct heaphistory *history = make(UINT64_C(1) << 63, 1);
    (void)state;
    check(history, UINT64_C(1) << 48);
    drop(history);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_one_block),
                                       cmocka_unit_test(of_many_blocks),
                                       cmocka_unit_test(of_a_damaged_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
