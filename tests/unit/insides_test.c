/* SPDX-License-Identifier: MIT */
/* insides_test.c: analyze/blocks/holes.c: as many large blocks as a damaged file may have, in the
 * orders that are bad for a search, cost a few looks each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/blocks/holes.h"

enum { COUNT = 200000, LOOKS = 4, LENGTH = 300 };

static void add_all(struct insides *insides, uint64_t distance) {
    for (uint64_t i = 0; i < COUNT; i++) {
        insides_add(insides, 1 + i * distance, 1 + i * distance + LENGTH);
    }
    assert_int_equal(insides->pages, (uint64_t)COUNT * LENGTH);
}

static void check_empty(struct insides *insides, uint64_t rounds) {
    assert_int_equal(insides->pages, 0);
    assert_int_equal(insides->by_start.used, 0);
    assert_true(insides->looks <= rounds * COUNT * LOOKS);
    for (size_t i = 0; i < insides->used; i++) {
        assert_int_equal(insides->items[i].end, 0);
    }
}

/* The oldest first, the newest first, and every other one. */
static void in_any_order(void **state) {
    struct insides insides = {0};
    (void)state;
    add_all(&insides, 1000);
    for (uint64_t i = 0; i < COUNT; i++) {
        insides_remove(&insides, 1 + i * 1000);
    }
    check_empty(&insides, 1);
    add_all(&insides, 1000);
    for (uint64_t i = COUNT; i-- > 0;) {
        insides_remove(&insides, 1 + i * 1000);
    }
    check_empty(&insides, 2);
    add_all(&insides, 1000);
    for (uint64_t i = 0; i < COUNT; i++) {
        insides_remove(&insides, 1 + i * 7 % COUNT * 1000);
    }
    check_empty(&insides, 3);
    assert_int_equal(insides.used, COUNT); /* places are used again */
}

static void at_one_address(void **state) {
    struct insides insides = {0};
    (void)state;
    add_all(&insides, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        insides_remove(&insides, 1);
    }
    check_empty(&insides, 1);
    insides_remove(&insides, 1);
}

/* The last one that began there goes first, and one that never was changes nothing. */
static void with_equal_starts(void **state) {
    struct insides insides = {0};
    (void)state;
    insides_remove(&insides, 5);
    insides_add(&insides, 5, 15);
    insides_add(&insides, 5, 105);
    insides_add(&insides, 6, 7);
    insides_remove(&insides, 5);
    assert_int_equal(insides.pages, 10 + 1);
    insides_remove(&insides, 5);
    insides_remove(&insides, 5);
    assert_int_equal(insides.pages, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_order),
        cmocka_unit_test(at_one_address),
        cmocka_unit_test(with_equal_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
