/* SPDX-License-Identifier: MIT */
/* wire_test.c: frames come back as they were put, in pieces too, and what is none is refused. */
#include "stream/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wire_hello example(void) {
    struct wire_hello hello = {.version = WIRE_VERSION,
                               .pid = 4711,
                               .part = 3,
                               .flags = WIRE_ALLOWS_CONTROL,
                               .started_ns = UINT64_C(0x1122334455667788)};
    for (int i = 0; i < WIRE_ID; i++) {
        hello.id[i] = (uint8_t)(200 + i);
    }
    strcpy(hello.host, "device-7");
    memset(hello.program, 'p', WIRE_NAME_MOST);
    return hello;
}

/* A frame is whole with its last byte and not before. */
static struct wire_frame parse_whole(const uint8_t *bytes, size_t size) {
    struct wire_frame frame;
    for (size_t have = 0; have < size; have++) {
        assert_int_equal(wire_parse(bytes, have, &frame), 0);
    }
    assert_int_equal(wire_parse(bytes, size, &frame), (long)size);
    assert_int_equal(wire_parse(bytes, size + 1, &frame), (long)size);
    return frame;
}

static void test_hello(void **state) {
    uint8_t bytes[WIRE_SMALL_MOST + 1] = {0};
    struct wire_hello hello = example();
    struct wire_hello read;
    size_t size = wire_put_hello(bytes, &hello);
    struct wire_frame frame = parse_whole(bytes, size);
    (void)state;
    assert_int_equal(frame.type, WIRE_HELLO);
    assert_int_equal(wire_read_hello(&frame, &read), 0);
    assert_memory_equal(&read, &hello, sizeof hello);
    frame.length--; /* without the zero at its end */
    assert_int_equal(wire_read_hello(&frame, &read), -1);
    memset(hello.host, 'h', WIRE_NAME_MOST); /* as long as can be */
    assert_true(wire_put_hello(bytes, &hello) <= WIRE_SMALL_MOST);
    hello.version = 9;
    size = wire_put_hello(bytes, &hello);
    frame = parse_whole(bytes, size);
    frame.length = 4; /* of another version only that is read */
    assert_int_equal(wire_read_hello(&frame, &read), 0);
    assert_int_equal(read.version, 9);
    assert_int_equal(read.pid, 0);
}

static void test_small(void **state) {
    uint8_t bytes[WIRE_SMALL_MOST + 1] = {0};
    struct wire_refusal refusal;
    struct wire_frame frame;
    uint32_t window;
    uint64_t hash;
    char reason[400];
    (void)state;
    frame = parse_whole(bytes, wire_put_welcome(bytes, 1 << 20, 1 << 22));
    assert_int_equal(wire_read_welcome(&frame, &window), 0);
    assert_true(frame.type == WIRE_WELCOME && frame.offset == 1 << 20 && window == 1 << 22);
    frame = parse_whole(bytes, wire_put_welcome(bytes, 0, 1));
    assert_int_equal(wire_read_welcome(&frame, &window), -1); /* no frame would go through it */
    frame = parse_whole(bytes, wire_put_ack(bytes, UINT64_C(5) << 32));
    assert_true(frame.type == WIRE_ACK && frame.offset == UINT64_C(5) << 32);
    frame = parse_whole(bytes, wire_put_alive(bytes));
    assert_int_equal(frame.type, WIRE_ALIVE);
    frame = parse_whole(bytes, wire_put_end(bytes, 77, UINT64_C(0xfedcba9876543210)));
    assert_int_equal(wire_read_end(&frame, &hash), 0);
    assert_true(frame.type == WIRE_END && frame.offset == 77 && hash == 0xfedcba9876543210u);
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    frame = parse_whole(bytes, wire_put_refusal(bytes, WIRE_QUOTA, reason));
    assert_int_equal(wire_read_refusal(&frame, &refusal), 0);
    assert_int_equal(refusal.code, WIRE_QUOTA);
    assert_int_equal(strlen(refusal.reason), WIRE_REASON_MOST);
}

static void test_control(void **state) {
    uint8_t bytes[WIRE_SMALL_MOST + 1] = {0};
    const struct programask_wish wish = {PROGRAMASK_SAMPLE, UINT64_C(1) << 40, "a mark"};
    struct programask_answer answer = {true, "sampled"};
    struct programask_wish read = {0};
    struct programask_answer heard = {0};
    struct wire_frame frame = parse_whole(bytes, wire_put_control(bytes, 17, &wish));
    (void)state;
    assert_true(frame.type == WIRE_CONTROL && frame.offset == 17);
    assert_int_equal(wire_read_control(&frame, &read), 0);
    assert_true(read.what == PROGRAMASK_SAMPLE && read.mean == wish.mean);
    assert_string_equal(read.text, "a mark");
    bytes[WIRE_HEADER] = PROGRAMASK_WISHES; /* no such wish */
    assert_int_equal(wire_read_control(&frame, &read), -1);
    bytes[WIRE_HEADER] = 0;
    assert_int_equal(wire_read_control(&frame, &read), -1);
    memset(answer.text, 'a', sizeof answer.text - 1); /* as long as can be */
    frame = parse_whole(bytes, wire_put_answer(bytes, 17, &answer));
    assert_true(frame.type == WIRE_ANSWER && frame.offset == 17);
    assert_int_equal(wire_read_answer(&frame, &heard), 0);
    assert_true(heard.is_done);
    assert_string_equal(heard.text, answer.text);
    bytes[WIRE_HEADER] = 2;
    assert_int_equal(wire_read_answer(&frame, &heard), -1);
}

/* What a receiver that has connected says, and what it is told. */
static void test_pulling(void **state) {
    uint8_t bytes[WIRE_SMALL_MOST + 1] = {0};
    struct wire_hello hello = example();
    struct wire_hello read;
    struct wire_frame frame;
    uint8_t id[WIRE_ID];
    uint32_t version;
    (void)state;
    frame = parse_whole(bytes, wire_put_pull(bytes, hello.id));
    assert_int_equal(frame.type, WIRE_PULL);
    assert_int_equal(wire_read_pull(&frame, &version, id), 0);
    assert_int_equal(version, WIRE_VERSION);
    assert_memory_equal(id, hello.id, WIRE_ID);
    frame.length--;
    assert_int_equal(wire_read_pull(&frame, &version, id), -1);
    bytes[WIRE_HEADER]++; /* of another version only that is read */
    assert_int_equal(wire_read_pull(&frame, &version, id), 0);
    assert_int_equal(version, WIRE_VERSION + 1);
    frame = parse_whole(bytes, wire_put_offer(bytes, &hello, 12345));
    assert_true(frame.type == WIRE_OFFER && frame.offset == 12345);
    assert_int_equal(wire_read_hello(&frame, &read), 0);
    assert_memory_equal(&read, &hello, sizeof hello);
}

/* The bytes that docs/stream.md tells. */
static void test_bytes(void **state) {
    static const uint8_t ack[] = {'M', 'T', 'S', 4, 0, 0, 0, 0, 0x39, 0x30, 0, 0, 0, 0, 0, 0};
    uint8_t bytes[WIRE_SMALL_MOST];
    (void)state;
    assert_int_equal(wire_put_ack(bytes, 12345), sizeof ack);
    assert_memory_equal(bytes, ack, sizeof ack);
}

static void test_garbage(void **state) {
    uint8_t bytes[WIRE_SMALL_MOST] = {0};
    struct wire_frame frame;
    (void)state;
    assert_int_equal(wire_parse((const uint8_t *)"GET /", 5, &frame), -1);
    assert_int_equal(wire_parse((const uint8_t *)"MX", 2, &frame), -1);
    wire_put_data(bytes, 0, WIRE_DATA_MOST);
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), 0);
    wire_put_data(bytes, 0, WIRE_DATA_MOST + 1); /* its header alone tells */
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), -1);
    wire_put_data(bytes, 0, 0);
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), -1);
    wire_put_data(bytes, UINT64_C(1) << 62, 1);
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), -1);
    wire_put_alive(bytes);
    bytes[3] = 99; /* no such type */
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), -1);
    bytes[3] = 0;
    assert_int_equal(wire_parse(bytes, WIRE_HEADER, &frame), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),   cmocka_unit_test(test_small),
        cmocka_unit_test(test_control), cmocka_unit_test(test_pulling),
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
