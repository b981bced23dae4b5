/* SPDX-License-Identifier: MIT */
/* safetext_test.c: analyze/rows/safetext and shellword: what of a foreign text may be printed. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/rows/safetext.h"

#include <stdlib.h>
#include <string.h>

static void expect(const char *text, const char *safe) {
    char *out = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&out, &size);
    char *copy = strdup(text);
    put_safe(stream, text);
    fclose(stream);
    assert_string_equal(out, safe);
    assert_string_equal(make_safe(copy), safe);
    free(out);
    free(copy);
}

static void characters(void **state) {
    (void)state;
    expect("", "");
    expect("plain ~ text", "plain ~ text");
    expect("Füße 日本 \xf0\x9f\x98\x80", "Füße 日本 \xf0\x9f\x98\x80");
    expect("\001\t\n\r\033[31m\177", "?????[31m?");
    expect("a\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0z", "a???\xc2\xa0z"); /* C1, and the first behind it */
    expect("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf", "????\xe2\x80\xaf");
    expect("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5??\xe2\x81\xaa");
    expect("\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90\xd8\x9c",
           "\xe2\x80\x8d??\xe2\x80\x90?");
}

static void no_characters(void **state) {
    (void)state;
    expect("\x9b"
           "2J",
           "?2J");
    expect("a\xff\xfe"
           "b",
           "a??b");
    expect("\xc3", "?");
    expect("\xe2\x80", "??");
    expect("\xc0\x9b", "??"); /* spelt too long */
    expect("\xed\xa0\x80", "???");
}

static void bounded(void **state) {
    char *out = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&out, &size);
    (void)state;
    put_safe_bytes(stream, "abc\033def", 5);
    put_safe_bytes(stream, "\xc3\xa9", 1); /* cut within a character */
    print_safe(stream, "<%s>\n", "a\nb");
    fclose(stream);
    assert_string_equal(out, "abc?d?<a?b>\n");
    free(out);
}

static void expect_word(const char *word, const char *quoted) {
    char *out = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&out, &size);
    shellword_put(stream, word);
    fclose(stream);
    assert_string_equal(out, quoted);
    free(out);
}

static void shell_words(void **state) {
    (void)state;
    expect_word("a/b.c", "a/b.c");
    expect_word("a b", "'a b'");
    expect_word("it's", "'it'\\''s'");
    expect_word("a\0331'\\", "$'a\\0331\\'\\\\'");
    expect_word("SELECT 1\n\tFROM a", "$'SELECT 1\\n\\tFROM a'");
    expect_word("x\xc2\x9b"
                "7",
                "$'x\\302\\2337'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(no_characters),
        cmocka_unit_test(bounded),
        cmocka_unit_test(shell_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
