/* SPDX-License-Identifier: MIT */
/* varint_test.c: analyze/read/varint.c: numbers and columns, whole and damaged. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/read/varint.h"

#include <stdlib.h>

static uint64_t get(const void *bytes, size_t size, bool *failed, size_t *taken) {
    struct varint_reader reader = {
        .next = bytes, .end = (const unsigned char *)bytes + size, .failed = failed};
    uint64_t value = varint_get(&reader);
    *taken = (size_t)(reader.next - (const unsigned char *)bytes);
    return value;
}

/* The same of a place where VARINT_MOST bytes are there. What follows the number is not its own. */
static void check_taken(const struct varint_writer *writer, uint64_t value) {
    for (int behind = 0; behind <= 0xff; behind += 0xff) {
        unsigned char room[2 * VARINT_MOST];
        const unsigned char *at = room;
        bool failed = false;
        memset(room, behind, sizeof room);
        memcpy(room, writer->bytes, writer->size);
        assert_true(varint_take(&at, &failed) == value);
        assert_false(failed);
        assert_int_equal(at - room, writer->size);
    }
}

static void numbers(void **state) {
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++) {
        for (int more = -1; more <= 1; more++) {
            uint64_t value = (UINT64_C(1) << shift) + (uint64_t)(int64_t)more;
            struct varint_writer writer = {0};
            bool failed = false;
            size_t taken;
            varint_put(&writer, value);
            assert_int_equal(get(writer.bytes, writer.size, &failed, &taken), value);
            assert_false(failed);
            assert_int_equal(taken, writer.size);
            assert_int_equal(writer.size, value < 128 ? 1 : (70 - __builtin_clzll(value)) / 7);
            assert_int_equal(varint_unzigzag(varint_zigzag(value)), value);
            check_taken(&writer, value);
            for (size_t cut = 0; cut < writer.size; cut++) {
                failed = false;
                assert_int_equal(get(writer.bytes, cut, &failed, &taken), 0);
                assert_true(failed);
            }
            free(writer.bytes);
        }
    }
    assert_int_equal(varint_zigzag(0 - UINT64_C(1)), 1);
    assert_int_equal(varint_zigzag(1), 2);
}

/* The tenth byte has room for one bit; there is no eleventh. */
static void too_long(void **state) {
    static const unsigned char most[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    static const unsigned char high[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    static const unsigned char eleven[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00";
    const unsigned char *at = high;
    bool failed = false;
    size_t taken;
    (void)state;
    assert_int_equal(varint_take(&at, &failed), 0);
    assert_true(failed);
    failed = false;
    assert_true(get(most, 10, &failed, &taken) == UINT64_MAX);
    assert_false(failed);
    assert_int_equal(get(high, 10, &failed, &taken), 0);
    assert_true(failed);
    failed = false;
    assert_int_equal(get(eleven, 11, &failed, &taken), 0);
    assert_true(failed);
}

static void columns(void **state) {
    struct varint_writer writers[3] = {{0}};
    struct varint_writer payload = {0};
    struct varint_reader readers[3];
    bool failed = false;
    (void)state;
    varint_put_bytes(&writers[0], "one", 3);
    varint_put_bytes(&writers[2], "three", 5);
    varint_join(writers, 3, &payload);
    assert_int_equal(payload.size, 12 + 3 + 5);
    assert_int_equal(varint_split(payload.bytes, payload.size, readers, 3, &failed), 0);
    assert_memory_equal(varint_get_bytes(&readers[0], 3), "one", 3);
    assert_ptr_equal(readers[1].next, readers[1].end);
    assert_memory_equal(varint_get_bytes(&readers[2], 5), "three", 5);
    assert_false(failed);
    assert_null(varint_get_bytes(&readers[2], 1));
    assert_true(failed);
    for (size_t cut = 0; cut < payload.size; cut++) {
        assert_int_equal(varint_split(payload.bytes, cut, readers, 3, &failed), -1);
    }
    payload.bytes[4] = 1; /* one byte more than there is */
    assert_int_equal(varint_split(payload.bytes, payload.size, readers, 3, &failed), -1);
    payload.bytes[7] = 0xff;
    assert_int_equal(varint_split(payload.bytes, payload.size, readers, 3, &failed), -1);
    for (int i = 0; i < 3; i++) {
        free(writers[i].bytes);
    }
    free(payload.bytes);
}

/* What failed once stays failed: a payload without its middle must not look whole. */
static void out_of_memory(void **state) {
    struct varint_writer writer = {0};
    struct varint_writer payload = {0};
    (void)state;
    varint_put(&writer, 5);
    assert_int_equal(varint_reserve(&writer, SIZE_MAX / 4), -1);
    assert_true(writer.failed);
    assert_int_equal(writer.size, 1);
    varint_join(&writer, 1, &payload);
    assert_true(payload.failed);
    free(writer.bytes);
    free(payload.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(too_long),
        cmocka_unit_test(columns),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
