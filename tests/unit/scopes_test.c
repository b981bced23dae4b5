/* SPDX-License-Identifier: MIT */
/* scopes_test.c: analyze/replay/scopes: which scopes a thread is in. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/scopes.h"

#include <string.h>

static void enter(struct scopes *scopes, uint32_t stream, uint64_t id, const char *name) {
    scopes_enter(scopes, stream, id, name, strlen(name));
}

static void nested(void **state) {
    struct scopes *scopes = scopes_new();
    uint32_t outer;
    uint32_t inner;
    (void)state;
    assert_non_null(scopes);
    assert_int_equal(scopes_path(scopes, 3), SCOPES_NONE);
    enter(scopes, 3, 1, "load");
    outer = scopes_path(scopes, 3);
    enter(scopes, 3, 2, "parse");
    inner = scopes_path(scopes, 3);
    assert_string_equal(scopes_name(scopes, inner), "parse");
    assert_true(scopes_has(scopes, inner, "load") && scopes_has(scopes, inner, "parse"));
    assert_false(scopes_has(scopes, inner, "pars"));
    assert_false(scopes_has(scopes, SCOPES_NONE, "load"));
    assert_int_equal(scopes_path(scopes, 0), SCOPES_NONE); /* another thread's */
    scopes_leave(scopes, 3, 2);
    assert_int_equal(scopes_path(scopes, 3), outer);
    assert_string_equal(scopes_name(scopes, outer), "load");
    scopes_leave(scopes, 3, 1);
    assert_int_equal(scopes_path(scopes, 3), SCOPES_NONE);
}

/* The same names in the same order have one number, in whatever thread, however often. */
static void same_names_same_path(void **state) {
    struct scopes *scopes = scopes_new();
    uint32_t first = 0;
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        enter(scopes, i % 7, 2 * i, "load");
        enter(scopes, i % 7, 2 * i + 1, i % 2 ? "parse" : "check");
        first = i == 1 ? scopes_path(scopes, i % 7) : first;
        assert_true(i == 0 || (scopes_path(scopes, i % 7) == first) == (i % 2 == 1));
        scopes_leave(scopes, i % 7, 2 * i + 1);
        scopes_leave(scopes, i % 7, 2 * i);
    }
    assert_true(scopes_path(scopes, 1) == SCOPES_NONE);
    enter(scopes, 0, 1, "parse");
    enter(scopes, 0, 2, "load");
    assert_int_not_equal(scopes_path(scopes, 0), first); /* another order is another path */
}

/* The outer one ends first; one that was never open ends. */
static void in_any_order(void **state) {
    struct scopes *scopes = scopes_new();
    (void)state;
    for (uint64_t id = 1; id <= 20; id++) {
        enter(scopes, 0, id, id == 5 ? "five" : "other");
    }
    scopes_leave(scopes, 0, 99);
    scopes_leave(scopes, 7, 1);
    assert_true(scopes_has(scopes, scopes_path(scopes, 0), "five"));
    for (uint64_t id = 1; id <= 4; id++) {
        scopes_leave(scopes, 0, id);
    }
    assert_true(scopes_has(scopes, scopes_path(scopes, 0), "five"));
    scopes_leave(scopes, 0, 5);
    assert_false(scopes_has(scopes, scopes_path(scopes, 0), "five"));
    assert_true(scopes_has(scopes, scopes_path(scopes, 0), "other"));
    for (uint64_t id = 6; id <= 20; id++) {
        scopes_leave(scopes, 0, id);
    }
    assert_int_equal(scopes_path(scopes, 0), SCOPES_NONE);
}

/* Inner ones stay open without one that ends: as if it had never been. */
static void the_middle_one_ends(void **state) {
    struct scopes *scopes = scopes_new();
    (void)state;
    enter(scopes, 0, 1, "load");
    enter(scopes, 0, 2, "parse");
    enter(scopes, 0, 3, "check");
    scopes_leave(scopes, 0, 2);
    enter(scopes, 1, 4, "load");
    enter(scopes, 1, 5, "check");
    assert_int_equal(scopes_path(scopes, 0), scopes_path(scopes, 1));
    assert_true(scopes_has(scopes, scopes_path(scopes, 0), "load"));
    assert_false(scopes_has(scopes, scopes_path(scopes, 0), "parse"));
    scopes_leave(scopes, 0, 3);
    scopes_leave(scopes, 1, 5);
    assert_int_equal(scopes_path(scopes, 0), scopes_path(scopes, 1));
    assert_string_equal(scopes_name(scopes, scopes_path(scopes, 0)), "load");
    scopes_leave(scopes, 0, 1);
    assert_int_equal(scopes_path(scopes, 0), SCOPES_NONE);
}

/* Texts of a file need not end, nor be whole. */
static void sizes_of_names(void **state) {
    struct scopes *scopes = scopes_new();
    (void)state;
    scopes_enter(scopes, 0, 1, "loading", 4);
    assert_string_equal(scopes_name(scopes, scopes_path(scopes, 0)), "load");
    scopes_enter(scopes, 0, 2, "a\0b", 3);
    assert_string_equal(scopes_name(scopes, scopes_path(scopes, 0)), "a");
    scopes_enter(scopes, 0, 3, "", 0);
    assert_string_equal(scopes_name(scopes, scopes_path(scopes, 0)), "");
    assert_true(scopes_has(scopes, scopes_path(scopes, 0), "load"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested),         cmocka_unit_test(same_names_same_path),
        cmocka_unit_test(in_any_order),   cmocka_unit_test(the_middle_one_ends),
        cmocka_unit_test(sizes_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
