/* SPDX-License-Identifier: MIT */
/* block_test.c: analyze/read/block.c: whatever is packed comes back, columns or not. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/read/block.h"
#include "analyze/read/eventcode.h"
#include "tests/unit/event_stream.h"

#include <stdlib.h>

static size_t round_trip(ZSTD_CCtx *context, enum memtrace_block_kind kind, const void *payload,
                         size_t size) {
    void *packed = malloc(BLOCK_PACK_BOUND(size));
    void *copy = malloc(size + 1); /* exactly these bytes, for sanitizers */
    void *back = malloc(size + 1);
    size_t stored;
    memcpy(copy, payload, size);
    stored = block_pack(context, kind, copy, size, BLOCK_PACK_LEVEL, packed);
    assert_true(stored != 0);
    assert_int_equal(ZSTD_getFrameContentSize(packed, stored), size);
    assert_int_equal(ZSTD_decompress(back, size, packed, stored), size);
    assert_memory_equal(back, payload, size);
    free(copy);
    free(packed);
    free(back);
    return stored;
}

static void events(void **state) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    struct event_encoder *encoder = event_encoder_new(0);
    (void)state;
    for (size_t count = 0; count < 60000; count = count * 3 + 1) {
        struct stream stream = stream_start(count + 1, 3, 1);
        struct memtrace_block_header block;
        struct event event;
        size_t size;
        const void *payload;
        event_encoder_start(encoder, 3, 1);
        for (size_t i = 0; i < count; i++) {
            stream_next(&stream, &event);
            assert_int_equal(event_encoder_add(encoder, &event), 0);
        }
        payload = event_encoder_finish(encoder, &size, &block);
        assert_true(count < 1000 || round_trip(context, MEMTRACE_BLOCK_EVENTS, payload, size) <=
                                        round_trip(context, MEMTRACE_BLOCK_SAMPLES, payload, size));
    }
    event_encoder_free(encoder);
    ZSTD_freeCCtx(context);
}

/* What says it has columns and has none: sizes that lead anywhere. */
static void no_columns(void **state) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    struct stream stream = stream_start(9, 3, 1);
    unsigned char bytes[9000];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)stream_random(&stream);
    }
    for (size_t size = 0; size < sizeof bytes; size += 1 + size / 3) {
        for (int kind = MEMTRACE_BLOCK_PROGRAM; kind <= MEMTRACE_BLOCK_TOTALS; kind++) {
            round_trip(context, (enum memtrace_block_kind)kind, bytes, size);
        }
        bytes[0] = (unsigned char)size; /* small first columns, too */
        bytes[1] = bytes[2] = bytes[3] = 0;
    }
    ZSTD_freeCCtx(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(no_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
