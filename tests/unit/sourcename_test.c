/* SPDX-License-Identifier: MIT */
/* sourcename_test.c: whatever a sender calls itself, its file lies one folder down and no further.
 */
#include "stream/sourcename.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_word(const char *name, const char *expected) {
    char word[SOURCE_WORD];
    source_word(name, word);
    assert_string_equal(word, expected);
}

static void test_words(void **state) {
    char name[300];
    char word[SOURCE_WORD];
    (void)state;
    assert_word("build-7.example_x+y", "build-7.example_x+y");
    assert_word("..", "_.");
    assert_word(".", "_");
    assert_word("", "_");
    assert_word("../../etc/passwd", "_._.._etc_passwd");
    assert_word(".hidden", "_hidden");
    assert_word("a b\n\x1b[31m\x7f\xc3\xa4", "a_b___31m___");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    source_word(name, word);
    assert_int_equal(strlen(word), SOURCE_WORD - 1);
}

/* Every byte, first and later: what comes out is one plain component. */
static void test_every_byte(void **state) {
    char word[SOURCE_WORD];
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char name[] = {(char)c, (char)c, '\0'};
        source_word(name, word);
        assert_true(word[0] != '.' && word[0] != '\0');
        for (const char *at = word; *at != '\0'; at++) {
            assert_true(*at > ' ' && *at < 0x7f && strchr("/\\:*?\"'<>|$`;&(){}[]!~", *at) == NULL);
        }
    }
}

static void test_names(void **state) {
    struct wire_hello hello = {.pid = 4711, .started_ns = UINT64_C(1700000000999999999)};
    char name[SOURCE_NAME];
    (void)state;
    strcpy(hello.host, "device");
    strcpy(hello.program, "redis-server");
    source_name(&hello, 1, name);
    assert_string_equal(name, "device/redis-server.4711.20231114T221320Z.mtr");
    hello.part = 2;
    source_name(&hello, 3, name);
    assert_string_equal(name, "device/redis-server.4711.20231114T221320Z.part2-3.mtr");
    memset(hello.host, '/', WIRE_NAME_MOST);
    memset(hello.program, '.', WIRE_NAME_MOST);
    hello.pid = hello.part = UINT32_MAX;
    hello.started_ns = UINT64_MAX;
    source_name(&hello, UINT32_MAX, name);
    assert_string_equal(name + strlen(name) - 4, ".mtr"); /* as long as can be, and not cut */
}

static void test_ids(void **state) {
    uint8_t head[SOURCE_HEAD] = {0};
    uint8_t id[WIRE_ID];
    uint8_t other[WIRE_ID];
    (void)state;
    source_id(head, id);
    head[SOURCE_HEAD - 1] = 1;
    source_id(head, other);
    assert_memory_not_equal(id, other, WIRE_ID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
