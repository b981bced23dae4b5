/* SPDX-License-Identifier: MIT */
/* pseudonym_test.c: made-up names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/pseudonym.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(struct pseudonyms *pseudonyms, enum pseudonym_kind kind,
                           const char *name) {
    return pseudonym_of(pseudonyms, kind, name, strlen(name));
}

static void numbers_names_as_they_come(void **state) {
    struct pseudonyms *pseudonyms = pseudonyms_new(NULL, 0);
    (void)state;
    assert_string_equal(name_of(pseudonyms, PSEUDONYM_FUNCTION, "alpha"), "function_1");
    assert_string_equal(name_of(pseudonyms, PSEUDONYM_FUNCTION, "beta"), "function_2");
    assert_string_equal(name_of(pseudonyms, PSEUDONYM_FUNCTION, "alpha"), "function_1");
    assert_string_equal(name_of(pseudonyms, PSEUDONYM_FILE, "alpha"), "file_1");
    assert_string_equal(name_of(pseudonyms, PSEUDONYM_FUNCTION, ""), "");
    /* Without an end of their own. */
    assert_string_equal(pseudonym_of(pseudonyms, PSEUDONYM_FUNCTION, "alphabet", 5), "function_1");
    pseudonyms_free(pseudonyms);
}

/* HMAC-SHA256 of "function", a NUL and "alpha", as Python's hmac computes it. */
static void hashes_names_with_a_key(void **state) {
    static const char key[] = "a key of sixteen";
    struct pseudonyms *one = pseudonyms_new(key, strlen(key));
    struct pseudonyms *same = pseudonyms_new(key, strlen(key));
    struct pseudonyms *other = pseudonyms_new("another key here", 16);
    char first[PSEUDONYM_MOST];
    (void)state;
    snprintf(first, sizeof first, "%s", name_of(one, PSEUDONYM_FUNCTION, "alpha"));
    assert_string_equal(first, "function_f60f8af12c9d");
    name_of(same, PSEUDONYM_FUNCTION, "something before");
    assert_string_equal(name_of(same, PSEUDONYM_FUNCTION, "alpha"), first);
    assert_string_not_equal(name_of(other, PSEUDONYM_FUNCTION, "alpha"), first);
    assert_string_not_equal(name_of(one, PSEUDONYM_FUNCTION, "alphb"), first);
    /* Of another kind the same name has another hash. */
    assert_string_not_equal(strchr(name_of(one, PSEUDONYM_MODULE, "alpha"), '_'),
                            strchr(first, '_'));
    pseudonyms_free(one);
    pseudonyms_free(same);
    pseudonyms_free(other);
}

static void keeps_names_apart(void **state) {
    enum { NAMES = 20000 };
    struct pseudonyms *keyed = pseudonyms_new("0123456789abcdef", 16);
    struct pseudonyms *plain = pseudonyms_new(NULL, 0);
    static char made[NAMES][PSEUDONYM_MOST];
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        char expected[32];
        snprintf(name, sizeof name, "name%d", i);
        snprintf(expected, sizeof expected, "thread_%d", i + 1);
        assert_string_equal(name_of(plain, PSEUDONYM_THREAD, name), expected);
        snprintf(made[i], sizeof made[i], "%s", name_of(keyed, PSEUDONYM_THREAD, name));
    }
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "name%d", i);
        assert_string_equal(name_of(keyed, PSEUDONYM_THREAD, name), made[i]);
        if (i > 0) {
            assert_string_not_equal(made[i], made[i - 1]);
        }
    }
    pseudonyms_free(keyed);
    pseudonyms_free(plain);
}

static void replaces_bytes(void **state) {
    struct pseudonyms *plain = pseudonyms_new(NULL, 0);
    struct pseudonyms *keyed = pseudonyms_new("0123456789abcdef", 16);
    uint8_t first[20] = "twenty bytes of this";
    uint8_t again[20] = "twenty bytes of this";
    uint8_t other[20] = "twenty bytes of that";
    static const uint8_t one[20] = {[19] = 1};
    static const uint8_t two[20] = {[19] = 2};
    (void)state;
    assert_int_equal(pseudonym_bytes(plain, PSEUDONYM_BUILD_ID, first, 20), 0);
    assert_int_equal(pseudonym_bytes(plain, PSEUDONYM_BUILD_ID, other, 20), 0);
    assert_int_equal(pseudonym_bytes(plain, PSEUDONYM_BUILD_ID, again, 20), 0);
    assert_memory_equal(first, one, 20);
    assert_memory_equal(again, one, 20);
    assert_memory_equal(other, two, 20);
    assert_int_equal(pseudonym_bytes(keyed, PSEUDONYM_BUILD_ID, first, 20), 0);
    assert_memory_not_equal(first, again, 20);
    assert_int_equal(pseudonym_bytes(keyed, PSEUDONYM_BUILD_ID, again, 20), 0);
    assert_memory_equal(first, again, 20);
    pseudonyms_free(plain);
    pseudonyms_free(keyed);
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
