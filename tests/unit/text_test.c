/* SPDX-License-Identifier: MIT */
/* Tests of runtime/base/text.c: a text that does not fit is cut, never overrun. */
#include "runtime/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *spell(void (*add)(struct text *text, uint64_t number), uint64_t number) {
    static char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    add(&text, number);
    return buffer;
}

static void numbers(void **state) {
    (void)state;
    assert_string_equal(spell(text_add_number, 0), "0");
    assert_string_equal(spell(text_add_number, UINT64_MAX), "18446744073709551615");
    assert_string_equal(spell(text_add_grouped, 999), "999");
    assert_string_equal(spell(text_add_grouped, 1234567), "1,234,567");
    assert_string_equal(spell(text_add_grouped, 1000000), "1,000,000");
    assert_string_equal(spell(text_add_hex, 0x12ab), "0x12ab");
    assert_string_equal(spell(text_add_hex, 0), "0x0");
}

static void sizes(void **state) {
    (void)state;
    assert_string_equal(spell(text_add_size, 0), "0 B");
    assert_string_equal(spell(text_add_size, 1024), "1.0 KiB");
    assert_string_equal(spell(text_add_size, 12903424), "12.3 MiB");
}

static void cut_not_overrun(void **state) {
    char buffer[16];
    (void)state;
    for (size_t capacity = 1; capacity < sizeof buffer; capacity++) {
        struct text text;
        memset(buffer, '#', sizeof buffer);
        text_init(&text, buffer, capacity);
        text_add(&text, "abcdefgh");
        text_add_number(&text, 1234567890);
        assert_int_equal(strlen(buffer), capacity - 1);
        assert_int_equal(text.length, capacity - 1);
        assert_true(text.cut);
        assert_int_equal(buffer[capacity], '#');
    }
}

static void strings(void **state) {
    char small[4];
    (void)state;
    assert_true(text_equal("a", "a"));
    assert_false(text_equal("a", "ab"));
    assert_true(text_starts("MEMTRACE_TOP", "MEMTRACE_"));
    assert_false(text_starts("MEM", "MEMTRACE_"));
    assert_string_equal(text_base_name("/usr/bin/ls"), "ls");
    assert_string_equal(text_base_name("ls"), "ls");
    text_copy(small, sizeof small, "longer");
    assert_string_equal(small, "lon");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(cut_not_overrun),
        cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
