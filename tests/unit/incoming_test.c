/* SPDX-License-Identifier: MIT */
/* incoming_test.c: stream/incoming: what is waited for of a connection, and how long. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "stream/gatherer.h"

#include <poll.h>

enum { LONG_MS = 5000 };

static struct source source; /* too large for the stack */

/* poll()'s events; and its time is to be this one. */
static int waits(int expected_ms) {
    int timeout_ms = LONG_MS;
    int events = incoming_waits(&source, &timeout_ms);
    assert_int_equal(timeout_ms, expected_ms);
    return events;
}

static int begin(void **state) {
    (void)state;
    source = (struct source){.state = GREETED, .arrival = ARRIVAL_NONE};
    return 0;
}

static void for_what_comes(void **state) {
    (void)state;
    assert_int_equal(waits(LONG_MS), POLLIN);
    source.is_hungry = true; /* the rest of a record of TLS is here already */
    assert_int_equal(waits(0), POLLIN);
}

/* Who does not take what he is told is not listened to: else each turn would be at once. */
static void for_room_to_answer(void **state) {
    (void)state;
    source.out_size = 1;
    assert_int_equal(waits(LONG_MS), POLLIN | POLLOUT);
    source.out_size = sizeof source.out - WIRE_SMALL_MOST;
    assert_int_equal(waits(LONG_MS), POLLIN | POLLOUT);
    source.out_size++;
    assert_int_equal(waits(LONG_MS), POLLOUT);
    source.is_hungry = true;
    assert_int_equal(waits(LONG_MS), POLLOUT);
}

static void for_a_connection_or_its_handshake(void **state) {
    (void)state;
    source.state = CALLING;
    assert_int_equal(waits(LONG_MS), POLLIN | POLLOUT);
    source.state = FRESH;
    source.channel.wants_write = true;
    assert_int_equal(waits(LONG_MS), POLLIN | POLLOUT);
}

static void not_while_there_is_work(void **state) {
    struct sync_job *job = (struct sync_job *)(void *)&source;
    int timeout_ms = 3;
    (void)state;
    source.waiting_ns = 1;
    assert_int_equal(waits(10), POLLIN);
    assert_int_equal(incoming_waits(&source, &timeout_ms), POLLIN);
    assert_int_equal(timeout_ms, 3);
    source.sync = job; /* it is on its way: who writes it wakes us */
    assert_int_equal(waits(LONG_MS), POLLIN);
    source.arrival.hash.is_running = true;
    assert_int_equal(waits(0), POLLIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(for_what_comes, begin),
        cmocka_unit_test_setup(for_room_to_answer, begin),
        cmocka_unit_test_setup(for_a_connection_or_its_handshake, begin),
        cmocka_unit_test_setup(not_while_there_is_work, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
