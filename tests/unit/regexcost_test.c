/* SPDX-License-Identifier: MIT */
/* regexcost_test.c: analyze/base/regexcost.c: what people write is let through, what regcomp()
 * would write out at length is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/base/regexcost.h"

#include <string.h>

static void usual_ones_are_let_through(void **state) {
    static const char *const usual[] = {
        "",
        "^std::",
        "a{1,255}",
        "[^]a-z[:alpha:]]{3}",
        "(a|b)+c*d?",
        "\\{9999}",
        "[{9999}]{2}",
        "operator\\(\\)",
        "a{,5}",
        "a{x}",
        "a{",
        "(a",
        "a)",
        "[",
        "[[:",
        "\\",
        "(a{1,30}){1,30}",
        "a{2000}",
        "x{0}",
    };
    char long_name[10001];
    (void)state;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        assert_false(regexcost_is_high(usual[i]));
    }
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_false(regexcost_is_high(long_name));
}

static void what_explodes_is_not(void **state) {
    static const char *const high[] = {
        "a{1,32767}",
        "a{32767}",
        "a{32767,}",
        "a{99999999999999999999}",
        "(a{1,255}){1,255}",
        "((a{1,255}){1,255}){1,255}",
        "((((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}){2}",
        "[^]x]{3000}",
        "x(ab?[0-9]){1000}",
        "a{50}{50}",
        "a*{50}+{50}",
    };
    char deep[2001];
    (void)state;
    for (size_t i = 0; i < sizeof high / sizeof high[0]; i++) {
        assert_true(regexcost_is_high(high[i]));
    }
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_true(regexcost_is_high(deep));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(usual_ones_are_let_through),
                                       cmocka_unit_test(what_explodes_is_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
