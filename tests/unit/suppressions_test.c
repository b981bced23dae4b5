/* SPDX-License-Identifier: MIT */
/* suppressions_test.c: analyze/filter/suppressions: patterns, files, what is left of a model. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/filter/suppressions.h"
#include "tests/unit/profile_builder.h"

static void patterns(void **state) {
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"foo", "foo", true},
        {"foo", "a_foo_b", true},
        {"foo", "fo", false},
        {"^foo", "foobar", true},
        {"^foo", "a_foo", false},
        {"foo$", "a_foo", true},
        {"foo$", "foob", false},
        {"^foo$", "foo", true},
        {"^foo$", "foofoo", false},
        {"a*c", "abc", true},
        {"a*c", "ac", true},
        {"a*c", "cab", false},
        {"^a*c$", "abcabc", true},
        {"^a*c$", "abcab", false},
        {"a*b*c", "a_c_b_c", true},
        {"^*foo", "my foo bar", true},
        {"*", "anything", true},
        {"*", "", true},
        {"^$", "", true},
        {"^$", "x", false},
        {"foo*$", "a foo bar", true},
        {"^foo*", "foo", true},
        {"a**b", "ab", true},
        {"^ab*ba$", "aba", false},
        {"^ab*ba$", "abba", true},
        {"*/lib*.so$", "/usr/libx.so", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (suppressions_match(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("%s and %s", cases[i].pattern, cases[i].text);
        }
    }
}

static void lines(void **state) {
    struct suppressions list = {0};
    struct error error;
    (void)state;
    assert_int_equal(
        suppressions_add_text(&list, "# comment\n\n  leak:one  \r\nrace:x\nleak:a:b\nleak:end",
                              "file", &error),
        0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].pattern, "one");
    assert_string_equal(list.items[1].pattern, "a:b");
    assert_int_equal(list.items[1].line, 5);
    assert_string_equal(list.items[2].pattern, "end");
    assert_int_equal(list.ignored, 1);
    assert_int_equal(suppressions_add_text(&list, "leak:x\nnonsense\n", "file", &error), -1);
    assert_non_null(strstr(error.message, "file:2: 'nonsense'"));
    assert_int_equal(suppressions_add_text(&list, "leak:\n", "file", &error), -1);
    assert_int_equal(suppressions_add_text(&list, ":x\n", "file", &error), -1);
    assert_int_equal(suppressions_add_file(&list, MEMTRACE_BINARY_DIR "/nowhere/list", &error), -1);
    assert_int_equal(suppressions_add_file(&list, "/", &error), -1);
}

/* The innermost frame that matches counts, and only leaks of the heap are changed. */
static void applied(void **state) {
    struct builder *builder = builder_new();
    struct error error = {""};
    struct suppressions list = {0};
    struct profile *profile;
    struct model *model;
    const struct model *left;
    struct names *names;
    uint64_t live;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    model = model_load(profile, &error);
    names = names_open(model, NULL, &error);
    assert_non_null(names);
    live = model->totals.live_bytes;
    suppressions_add_text(&list, "leak:nothing\nleak:/bin/example$\nleak:libother\n", "f", &error);
    left = suppressions_leave(&list, model, names);
    assert_true(left->totals.live_bytes == 0 && left->totals.live_blocks == 0);
    assert_true(list.bytes == live && list.items[2].bytes == live);
    assert_true(list.items[0].contexts == 0 && list.items[1].contexts == 0);
    assert_true(left->totals.total_bytes == model->totals.total_bytes);
    assert_true(model->totals.live_bytes == live);
    for (size_t i = 0; i < left->context_count; i++) {
        assert_true(left->contexts[i].class != MODEL_HEAP || left->contexts[i].live_bytes == 0);
        assert_true(left->contexts[i].class == MODEL_HEAP || left->contexts[i].live_bytes != 0);
    }
    names_close(names);
    model_free(model);
    profile_close(profile);
    free(builder);
}

/* What every report leaves out where nothing else is asked for. */
static void usual(void **state) {
    struct builder *builder = builder_new();
    struct error error = {""};
    struct suppressions list = {0};
    struct profile *profile;
    struct model *model;
    size_t built_in = 0;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    model = model_load(profile, &error);
    assert_non_null(model);
    suppressions_apply_usual(&list, model);
    for (size_t i = 0; i < list.count; i++) {
        built_in += strcmp(list.items[i].pattern, "^setlocale$") == 0;
    }
    assert_int_equal(built_in, 1);
    assert_int_equal(list.bytes, 0); /* none of them is in the example */
    model_free(model);
    profile_close(profile);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns), cmocka_unit_test(lines),
                                       cmocka_unit_test(applied), cmocka_unit_test(usual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
