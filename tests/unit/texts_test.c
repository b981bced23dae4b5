/* SPDX-License-Identifier: MIT */
/* texts_test.c: analyze/model/texts: each text once, where it was, within its bound. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void each_once(void **state) {
    enum { COUNT = 5000 };
    struct texts texts = {0};
    const char *first[COUNT];
    char text[32];
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            int length = snprintf(text, sizeof text, "text %d", i);
            const char *kept = texts_keep(&texts, text, (size_t)length);
            assert_string_equal(kept, text);
            first[i] = round == 0 ? kept : first[i];
            assert_ptr_equal(kept, first[i]);
        }
    }
    assert_int_equal(texts.count, COUNT);
    assert_string_equal(texts_keep(&texts, "text 12 and more", 7), "text 12");
    assert_int_equal(texts.count, COUNT);
    texts_free(&texts);
}

static void odd_ones(void **state) {
    struct texts texts = {0};
    (void)state;
    assert_string_equal(texts_keep(&texts, NULL, 0), "");
    assert_string_equal(texts_keep(&texts, "", 0), "");
    assert_string_equal(texts_keep(&texts, "\0behind", 7), "");
    assert_string_equal(texts_keep(&texts, "a\0b", 3), "a");
    assert_string_equal(texts_keep(&texts, "ab", 2), "ab");
    assert_int_equal(texts.count, 2);
    texts_free(&texts);
}

static void too_many(void **state) {
    enum { LENGTH = 65535 };
    struct texts texts = {0};
    char *text = malloc(LENGTH + 1);
    size_t kept = 0;
    (void)state;
    assert_non_null(text);
    memset(text, 'x', LENGTH);
    for (int i = 0; i < 100; i++) {
        text[0] = (char)(' ' + i);
        kept += texts_keep(&texts, text, LENGTH)[0] != '\0';
    }
    assert_int_equal(kept, TEXTS_BYTES / (LENGTH + 1));
    text[0] = ' ';
    assert_int_equal(strlen(texts_keep(&texts, text, LENGTH)), LENGTH);
    texts_free(&texts);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_once),
        cmocka_unit_test(odd_ones),
        cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
