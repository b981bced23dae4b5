/* SPDX-License-Identifier: MIT */
/* pattern_test.c: regular expressions of users: what is compiled, and what would take all memory or
 * time and is refused. */
#include "analyze/base/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *text) {
    regex_t regex;
    char why[PATTERN_WHY];
    bool found;
    assert_int_equal(pattern_compile(&regex, pattern, why), 0);
    found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static void refuses(const char *pattern, const char *reason) {
    regex_t regex;
    char why[PATTERN_WHY] = "";
    assert_int_equal(pattern_compile(&regex, pattern, why), -1);
    assert_string_equal(why, reason);
}

static void usual(void **state) {
    (void)state;
    assert_true(matches("^main$", "main"));
    assert_false(matches("^main$", "domain"));
    assert_true(matches("std::(vector|map)<.*>::~?", "std::map<int, int>::map"));
    assert_true(matches("a{2,3}b", "xaab"));
    assert_true(matches("a{2,}", "aaaa"));
    assert_true(matches("[]{(\\1]{2}", "({"));
    assert_true(matches("[[:digit:]]{1,200}x", "12x"));
    assert_true(matches("(\\(anonymous namespace\\)::)?f\\{\\}", "f{}"));
    assert_true(matches("(a+)+(b*)*c?", "aab"));
    assert_true(matches("", "anything"));
}

static void wrong(void **state) {
    (void)state;
    refuses("(", "Unmatched ( or \\(");
    refuses("[a", "Unmatched [, [^, [:, [., or [=");
}

static void explosive(void **state) {
    char text[70000];
    (void)state;
    refuses("a{1,9999}", "Too large with its repetitions");
    refuses("((a*){1,90}){1,90}", "Too large with its repetitions");
    refuses("(.*)(.*)\\1\\2x", "Back-references are not supported");
    refuses("(((a{1,99}){1,99}){1,99}){1,99}", "Too large with its repetitions");
    refuses("((a{255}){255}){255}", "Too large with its repetitions");
    refuses("((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", "Too large with its repetitions");
    refuses("([abc]{100}|d{200}){100,}", "Too large with its repetitions");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuses(text, "Too long");
    memset(text, '(', 100);
    memset(text + 100, ')', 100);
    text[200] = '\0';
    refuses(text, "Too many groups in each other");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual),
        cmocka_unit_test(wrong),
        cmocka_unit_test(explosive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
