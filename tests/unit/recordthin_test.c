/* SPDX-License-Identifier: MIT */
/* Tests of collect/recordthin.c: when fewer events are asked for, and what the file says of it. */
#include "collect/recordthin.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WHOLE = RECORDTHIN_WHOLE };

static void asks_at_half_and_at_each_eighth_of_the_rest(void **state) {
    struct recordthin_room room = {.left_then = WHOLE};
    (void)state;
    assert_false(recordthin_asks(&room, WHOLE));
    assert_false(recordthin_asks(&room, WHOLE / 2));
    assert_true(recordthin_asks(&room, WHOLE / 2 - 1));
    assert_false(recordthin_asks(&room, WHOLE / 2 - 2));
    assert_false(recordthin_asks(&room, WHOLE / 16 * 7));
    assert_true(recordthin_asks(&room, WHOLE / 16 * 7 - 1));
    /* Some comes back, and goes again. */
    assert_false(recordthin_asks(&room, WHOLE / 16 * 8 - 1));
    assert_false(recordthin_asks(&room, WHOLE / 16 * 7));
    assert_true(recordthin_asks(&room, WHOLE / 16 * 7 - 2));
    /* Half is free again: from the beginning. */
    assert_false(recordthin_asks(&room, WHOLE / 2));
    assert_true(recordthin_asks(&room, WHOLE / 2 - 1));
}

/* What comes at a rate that each answer halves never fills it: here a thousand times as long as it
 * would take. */
static void the_room_does_not_end(void **state) {
    struct recordthin_room room = {.left_then = WHOLE};
    double left = WHOLE;
    double rate = WHOLE / 1000.0;
    int asked = 0;
    (void)state;
    for (int i = 0; i < 1000000; i++) {
        left -= rate;
        assert_true(left > 0);
        if (recordthin_asks(&room, (uint32_t)left)) {
            rate /= 2;
            asked++;
        }
    }
    assert_uint_in_range(asked, 8, 20);
}

/* Events of the last 10 ms before a look may have been thinned when it was seen: the stretch begins
 * so long before it, but not before the program. */
static void a_stretch_begins_before_it_is_seen(void **state) {
    static const uint64_t begins[][2] = {
        {50000000, 40000000}, {10000001, 1}, {10000000, 0}, {3000000, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        struct memtrace_recording recording = {.on_lag = MEMTRACE_LAG_THIN};
        struct recordthin thin;
        recordthin_open(&thin, &recording, begins[i][0]);
        memtrace_thin(&recording, 1);
        recordthin_end(&thin, 90000000);
        assert_int_equal(thin.open.distance, memtrace_distance(&recording));
        assert_int_equal(thin.open.from_ns, begins[i][1]);
        assert_int_equal(thin.ended_ns, 90000000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_at_half_and_at_each_eighth_of_the_rest),
        cmocka_unit_test(the_room_does_not_end),
        cmocka_unit_test(a_stretch_begins_before_it_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
