/* SPDX-License-Identifier: MIT */
/* array_test.c: arrays keep their items as they grow, and stay as they are where there is no room.
 */
#include "analyze/base/array.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
// clang-format on

static void keeps_all(void **state) {
    uint32_t *items = NULL;
    size_t room = 0;
    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(array_grow(&items, &room, i, sizeof *items), 0);
        assert_true(room > i);
        items[i] = i * 7;
    }
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(items[i], i * 7);
    }
    assert_int_equal(array_reserve(&items, &room, 100000, sizeof *items), 0);
    assert_true(room >= 100000);
    assert_int_equal(items[9999], 9999 * 7);
    free(items);
}

static void refuses_too_many(void **state) {
    uint64_t *items = NULL;
    size_t room = 0;
    (void)state;
    assert_int_equal(array_reserve(&items, &room, SIZE_MAX / 4, sizeof *items), -1);
    assert_int_equal(array_reserve(&items, &room, SIZE_MAX, 1), -1);
    assert_null(items);
    assert_int_equal(room, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_all),
        cmocka_unit_test(refuses_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
