/* SPDX-License-Identifier: MIT */
/* topstate_test.c: top/topstate: which rows are on the screen. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "top/topstate.h"

static void scrolls_as_little_as_shows_it(void **state) {
    (void)state;
    assert_int_equal(topstate_scroll(0, 9, 50, 10), 0);  /* the last that is shown */
    assert_int_equal(topstate_scroll(0, 10, 50, 10), 1); /* the first that is not */
    assert_int_equal(topstate_scroll(5, 5, 50, 10), 5);
    assert_int_equal(topstate_scroll(5, 4, 50, 10), 4);
    assert_int_equal(topstate_scroll(0, 49, 50, 10), 40);
    assert_int_equal(topstate_scroll(45, 49, 50, 10), 40); /* no room is left below the last */
    assert_int_equal(topstate_scroll(3, 2, 8, 10), 0);
    assert_int_equal(topstate_scroll(7, 0, 0, 10), 0);
    assert_int_equal(topstate_scroll(2, 5, 50, 0), 2); /* a screen without room for any */
}

/* Whatever is asked: what is selected is on the screen, and the screen is full if it can be. */
static void shows_what_is_selected(void **state) {
    (void)state;
    for (size_t count = 1; count <= 12; count++) {
        for (size_t shown = 1; shown <= 12; shown++) {
            for (size_t top = 0; top < count; top++) {
                for (size_t selected = 0; selected < count; selected++) {
                    size_t now = topstate_scroll(top, selected, count, shown);
                    assert_true(now <= selected && selected < now + shown);
                    assert_true(now + shown <= count || now == 0);
                    if (top <= selected && selected < top + shown && top + shown <= count) {
                        assert_int_equal(now, top);
                    }
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scrolls_as_little_as_shows_it),
        cmocka_unit_test(shows_what_is_selected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
