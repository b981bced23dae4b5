/* SPDX-License-Identifier: MIT */
/* export_test.c: analyze/export: formats of built profiles, text from outside, the size of pages.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/export/shared.h"
#include "tests/unit/profile_builder.h"

#include <stdlib.h>

/* A built profile; its modules are not there, so functions are module+offset. */
struct subject {
    struct model *model;
    struct names *names;
    struct export export;
    char *text;
    size_t size;
};

static void open_subject(struct subject *subject, struct builder *builder, const char *module) {
    struct error error = {""};
    struct profile *profile;
    for (size_t at = MEMTRACE_HEADER_SIZE; at < builder_size(builder); at += 4096) {
        struct memtrace_segment *segment = (void *)(builder->bytes + at);
        if (segment->magic == MEMTRACE_SEGMENT_MAGIC && segment->kind == MEMTRACE_SEGMENT_MODULES) {
            snprintf(((struct memtrace_module *)segment)[1].path,
                     sizeof((struct memtrace_module *)segment)[1].path, "%s", module);
            strcpy(((struct memtrace_module *)segment)[2].path, "/nowhere/libother.so.1");
        }
    }
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    assert_non_null(profile);
    *subject = (struct subject){.model = model_load(profile, &error)};
    profile_close(profile);
    assert_non_null(subject->model);
    subject->names = names_open(subject->model, NULL, &error);
    assert_non_null(subject->names);
    subject->export = (struct export){.model = subject->model,
                                      .names = subject->names,
                                      .cost = METRIC_CUMULATIVE,
                                      .source = "test.mtp",
                                      .out = open_memstream(&subject->text, &subject->size)};
    assert_non_null(subject->export.out);
    free(builder);
}

static void open_example(struct subject *subject) {
    struct builder *builder = builder_new();
    builder_example(builder, 0x10000000);
    open_subject(subject, builder, "/nowhere/bin/a;b");
}

static void close_subject(struct subject *subject) {
    fclose(subject->export.out);
    free(subject->text);
    names_close(subject->names);
    model_free(subject->model);
}

static const char *written(struct subject *subject, void (*export)(const struct export *export)) {
    export(&subject->export);
    fflush(subject->export.out);
    return subject->text;
}

static void folded(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    assert_string_equal(written(&subject, export_folded),
                        "a:b+0x100f;a:b+0x201f;libother.so.1+0x302f 1500\n"
                        "a:b+0x100f;libother.so.1+0x302f 50\n");
    close_subject(&subject);
    open_example(&subject);
    subject.export.all_frames = true;
    assert_string_equal(written(&subject, export_folded),
                        "a:b+0x100f;a:b+0x201f;a:b+0x201f;libother.so.1+0x302f 1000\n"
                        "a:b+0x100f;a:b+0x201f;libother.so.1+0x302f 500\n"
                        "a:b+0x100f;libother.so.1+0x302f 50\n");
    close_subject(&subject);
}

static void expect_markup(const char *text, size_t most, const char *expected) {
    char *written_text = NULL;
    size_t size;
    FILE *out = open_memstream(&written_text, &size);
    if (most != 0) {
        markup_text_cut(out, text, most);
    } else {
        markup_text(out, text);
    }
    fclose(out);
    assert_string_equal(written_text, expected);
    free(written_text);
}

static void markup(void **state) {
    (void)state;
    expect_markup("a<b>&\"'", 0, "a&lt;b&gt;&amp;&quot;&#39;");
    expect_markup("\x01\x1b\n\x7f", 0, "????");
    expect_markup("\xc3\xbc\xff\xef\xbf\xbf", 0, "\xc3\xbc\xef\xbf\xbd\xef\xbf\xbd");
    expect_markup("\xc3\xbc<cdef", 6, "\xc3\xbc&lt;cdef");
    expect_markup("\xc3\xbc<cdefg", 6, "\xc3\xbc&lt;cd..");
    expect_markup("abc", 1, "..");
}

static void numbers(void **state) {
    struct numbering numbering = {0};
    struct numbering bare = {0};
    char text[200][8];
    bool is_new;
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        snprintf(text[i], sizeof text[i], "%zu", i);
        assert_int_equal(numbering_add(&numbering, numbering_key(text[i]), text[i]), i + 1);
        assert_int_equal(numbering_of(&bare, i + 7, &is_new), i + 1);
        assert_true(is_new);
    }
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(numbering_add(&numbering, numbering_key(text[i]), "another"), i + 1);
        assert_string_equal(numbering.items[i], text[i]);
        assert_int_equal(numbering_of(&bare, i + 7, &is_new), i + 1);
        assert_false(is_new);
    }
    assert_int_equal(numbering.count, 200);
}

enum { MANY = 9 * MEMTRACE_LEAF_ITEMS };

/* Call paths of one function each, the i-th of i bytes; each name is full of what takes six bytes
 * in the page. */
static void open_many(struct subject *subject) {
    struct builder *builder = builder_new();
    struct memtrace_module *modules = builder_modules(builder);
    char module[256] = "/nowhere/";
    memset(module + 9, '<', 200);
    builder_set_module(modules, 1, 0x10000000, module);
    builder_header(builder)->module_count = 2;
    builder_header(builder)->context_count = MANY;
    for (uint32_t leaf = 0; leaf < MANY / MEMTRACE_LEAF_ITEMS; leaf++) {
        struct memtrace_node *tree = builder_tree(builder, leaf);
        struct memtrace_cell *cells = builder_ledger(builder, 1, leaf);
        for (uint32_t i = 16; i < MEMTRACE_LEAF_ITEMS; i++) { /* behind the header */
            uint32_t id = leaf * MEMTRACE_LEAF_ITEMS + i;
            tree[i] = (struct memtrace_node){builder_frame(1, 0x10000000 + 16 * id), 0, 0};
            cells[i] = (struct memtrace_cell){.alloc_bytes = id, .alloc_count = 1};
        }
    }
    open_subject(subject, builder, module);
}

/* With all names the picture would have more than 10 MB. */
static void picture_is_small(void **state) {
    struct subject subject;
    const char *picture;
    (void)state;
    open_many(&subject);
    picture = written(&subject, export_flamegraph);
    assert_uint_in_range(subject.size, 10000, 4999999);
    assert_null(strstr(picture, "<<<"));
    close_subject(&subject);
}

/* Nothing was ever allocated. */
static void empty(void **state) {
    static void (*const all[])(const struct export *) = {export_folded,    export_flamegraph,
                                                         export_gprof2dot, export_speedscope,
                                                         export_json,      export_csv};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct subject subject;
        open_subject(&subject, builder_new(), "");
        written(&subject, all[i]);
        close_subject(&subject);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded),           cmocka_unit_test(markup), cmocka_unit_test(numbers),
        cmocka_unit_test(picture_is_small), cmocka_unit_test(empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
