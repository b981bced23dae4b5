/* SPDX-License-Identifier: MIT */
/* anonymize_test.c: made-up names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/transform/anonymize.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name) {
    return fakename_of(fakenames, kind, name, strlen(name));
}

static void numbers_names_as_they_come(void **state) {
    struct fakenames *fakenames = fakenames_new(NULL, 0);
    (void)state;
    assert_string_equal(name_of(fakenames, FAKENAME_FUNCTION, "alpha"), "function_1");
    assert_string_equal(name_of(fakenames, FAKENAME_FUNCTION, "beta"), "function_2");
    assert_string_equal(name_of(fakenames, FAKENAME_FUNCTION, "alpha"), "function_1");
    assert_string_equal(name_of(fakenames, FAKENAME_FILE, "alpha"), "file_1");
    assert_string_equal(name_of(fakenames, FAKENAME_FUNCTION, ""), "");
    /* Without an end of their own. */
    assert_string_equal(fakename_of(fakenames, FAKENAME_FUNCTION, "alphabet", 5), "function_1");
}

/* HMAC-SHA256 of "function", a NUL and "alpha", as Python's hmac computes it. */
static void hashes_names_with_a_key(void **state) {
    static const char key[] = "a key of sixteen";
    struct fakenames *one = fakenames_new(key, strlen(key));
    struct fakenames *same = fakenames_new(key, strlen(key));
    struct fakenames *other = fakenames_new("another key here", 16);
    char first[FAKENAME_MOST];
    (void)state;
    snprintf(first, sizeof first, "%s", name_of(one, FAKENAME_FUNCTION, "alpha"));
    assert_string_equal(first, "function_f60f8af12c9d");
    name_of(same, FAKENAME_FUNCTION, "something before");
    assert_string_equal(name_of(same, FAKENAME_FUNCTION, "alpha"), first);
    assert_string_not_equal(name_of(other, FAKENAME_FUNCTION, "alpha"), first);
    assert_string_not_equal(name_of(one, FAKENAME_FUNCTION, "alphb"), first);
    /* Of another kind the same name has another hash. */
    assert_string_not_equal(strchr(name_of(one, FAKENAME_MODULE, "alpha"), '_'),
                            strchr(first, '_'));
}

static void keeps_names_apart(void **state) {
    enum { NAMES = 20000 };
    struct fakenames *keyed = fakenames_new("0123456789abcdef", 16);
    struct fakenames *plain = fakenames_new(NULL, 0);
    static char made[NAMES][FAKENAME_MOST];
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        char expected[32];
        snprintf(name, sizeof name, "name%d", i);
        snprintf(expected, sizeof expected, "thread_%d", i + 1);
        assert_string_equal(name_of(plain, FAKENAME_THREAD, name), expected);
        snprintf(made[i], sizeof made[i], "%s", name_of(keyed, FAKENAME_THREAD, name));
    }
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "name%d", i);
        assert_string_equal(name_of(keyed, FAKENAME_THREAD, name), made[i]);
        if (i > 0) {
            assert_string_not_equal(made[i], made[i - 1]);
        }
    }
}

static void replaces_bytes(void **state) {
    struct fakenames *plain = fakenames_new(NULL, 0);
    struct fakenames *keyed = fakenames_new("0123456789abcdef", 16);
    uint8_t first[20] = "twenty bytes: this";
    uint8_t again[20] = "twenty bytes: this";
    uint8_t other[20] = "twenty bytes: that";
    static const uint8_t one[20] = {[19] = 1};
    static const uint8_t two[20] = {[19] = 2};
    (void)state;
    fakename_bytes(plain, FAKENAME_BUILD_ID, first, 20);
    fakename_bytes(plain, FAKENAME_BUILD_ID, other, 20);
    fakename_bytes(plain, FAKENAME_BUILD_ID, again, 20);
    assert_memory_equal(first, one, 20);
    assert_memory_equal(again, one, 20);
    assert_memory_equal(other, two, 20);
    fakename_bytes(keyed, FAKENAME_BUILD_ID, first, 20);
    assert_memory_not_equal(first, again, 20);
    fakename_bytes(keyed, FAKENAME_BUILD_ID, again, 20);
    assert_memory_equal(first, again, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_names_as_they_come),
        cmocka_unit_test(hashes_names_with_a_key),
        cmocka_unit_test(keeps_names_apart),
        cmocka_unit_test(replaces_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
