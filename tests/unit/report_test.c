/* SPDX-License-Identifier: MIT */
/* report_test.c: analyze/report: trees, table, paths, JSON and CSV of built profiles. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/report/calltree.h"
#include "analyze/report/framesums.h"
#include "analyze/rows/number.h"
#include "tests/unit/profile_builder.h"

#include <yajl/yajl_tree.h>

/* A report over a built profile; its modules are not there, so functions are module+offset. */
struct subject {
    struct model *model;
    struct names *names;
    struct report report;
    char *text;
    size_t size;
};

static void open_subject(struct subject *subject, const struct builder *builder) {
    struct error error = {""};
    struct profile *profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    assert_non_null(profile);
    *subject = (struct subject){.model = model_load(profile, &error)};
    profile_close(profile);
    assert_non_null(subject->model);
    subject->names = names_open(subject->model, NULL, &error);
    assert_non_null(subject->names);
    subject->report = (struct report){.model = subject->model,
                                      .names = subject->names,
                                      .source = "test.mtp",
                                      .out = open_memstream(&subject->text, &subject->size)};
    assert_non_null(subject->report.out);
}

static void open_example(struct subject *subject) {
    struct builder *builder = builder_new();
    builder_example(builder, 0x10000000);
    for (size_t at = MEMTRACE_HEADER_SIZE; at < builder_size(builder); at += 4096) {
        struct memtrace_segment *segment = (void *)(builder->bytes + at);
        if (segment->magic == MEMTRACE_SEGMENT_MAGIC && segment->kind == MEMTRACE_SEGMENT_MODULES) {
            strcpy(((struct memtrace_module *)segment)[1].path, "/nowhere/bin/example");
            strcpy(((struct memtrace_module *)segment)[2].path, "/nowhere/libother.so.1");
        }
    }
    open_subject(subject, builder);
    free(builder);
}

static const char *text_of(struct subject *subject) {
    fflush(subject->report.out);
    return subject->text;
}

static void close_subject(struct subject *subject) {
    fclose(subject->report.out);
    free(subject->text);
    names_close(subject->names);
    model_free(subject->model);
}

static void expect(struct subject *subject, const char *part) {
    if (strstr(text_of(subject), part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, subject->text);
    }
}

static void top_down(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    report_tree(&subject.report, METRIC_LEAKED);
    expect(&subject, " 100.0%     1.3 KiB            5  example+0x100f\n"
                     " 100.0%     1.3 KiB            5  example+0x201f (recursive)\n"
                     " 100.0%     1.3 KiB            5  libother.so.1+0x302f\n");
    close_subject(&subject);

    open_example(&subject);
    subject.report.options.all_frames = true;
    report_tree(&subject.report, METRIC_LEAKED);
    expect(&subject, " 100.0%     1.3 KiB            5  example+0x100f\n"
                     " 100.0%     1.3 KiB            5  example+0x201f\n"
                     "  76.9%      1000 B            2  |- example+0x201f\n"
                     "  76.9%      1000 B            2  |  libother.so.1+0x302f\n"
                     "  23.1%       300 B            3  `- libother.so.1+0x302f\n");
    close_subject(&subject);
}

static void bottom_up(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    subject.report.options.bottom_up = true;
    report_tree(&subject.report, METRIC_ALLOCATIONS);
    expect(&subject, " 100.0%           8      1.5 KiB  libother.so.1+0x302f\n"
                     "  87.5%           7      1.5 KiB  |- example+0x201f (recursive)\n"
                     "  87.5%           7      1.5 KiB  |  example+0x100f\n"
                     "  12.5%           1         50 B  `- example+0x100f\n");
    close_subject(&subject);
}

static void thresholds(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    subject.report.options.min_percent = 30;
    subject.report.options.unicode = true;
    subject.report.options.all_frames = true;
    report_tree(&subject.report, METRIC_LEAKED);
    expect(&subject, "├─ example+0x201f");
    expect(&subject, "  23.1%       300 B            3  └─ (1 smaller)");
    assert_null(strstr(text_of(&subject), "`-"));
    close_subject(&subject);

    open_example(&subject);
    subject.report.options.depth = 1;
    report_tree(&subject.report, METRIC_LEAKED);
    expect(&subject, "example+0x100f (goes on)\n");
    assert_null(strstr(text_of(&subject), "0x201f"));
    close_subject(&subject);

    open_example(&subject);
    subject.report.options.limit = 1;
    report_paths(&subject.report, METRIC_CUMULATIVE);
    expect(&subject, "   1.  64.5%      1000 B  2 allocations, 1000 B in 2 leaked");
    expect(&subject, "(2 smaller paths not shown)");
    close_subject(&subject);
}

/* parse calls itself: its inclusive cost counts once. */
static void flat(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    report_flat(&subject.report, METRIC_CUMULATIVE);
    expect(&subject, " 100.0%     1.5 KiB            8   100.0%     1.5 KiB  libother.so.1+0x302f\n"
                     "   0.0%         0 B            0   100.0%     1.5 KiB  example+0x100f\n"
                     "   0.0%         0 B            0    96.8%     1.5 KiB  example+0x201f\n");
    close_subject(&subject);
}

/* Without debug information no frame has a file or a line: there is nothing to add up by them. */
static void frames_without_lines(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    for (enum framesums_by by = FRAMESUMS_FUNCTION; by <= FRAMESUMS_FILE; by++) {
        struct framesums sums = framesums_make(&subject.report, by);
        assert_int_equal(sums.count, by == FRAMESUMS_FUNCTION ? 3 : 0);
    }
    close_subject(&subject);
}

static uint64_t member(yajl_val object, const char *name) {
    const char *path[] = {name, NULL};
    yajl_val value = yajl_tree_get(object, path, yajl_t_number);
    if (value == NULL) {
        fail_msg("no number %s", name);
    }
    return (uint64_t)YAJL_GET_INTEGER(value);
}

static yajl_val array(yajl_val object, const char *name, size_t size) {
    const char *path[] = {name, NULL};
    yajl_val value = yajl_tree_get(object, path, yajl_t_array);
    assert_non_null(value);
    assert_int_equal(YAJL_GET_ARRAY(value)->len, size);
    return value;
}

static uint64_t sum(yajl_val objects, const char *name) {
    uint64_t total = 0;
    for (size_t i = 0; i < YAJL_GET_ARRAY(objects)->len; i++) {
        total += member(YAJL_GET_ARRAY(objects)->values[i], name);
    }
    return total;
}

static void json(void **state) {
    static const char *const totals[][2] = {
        {"peak_bytes", "peak_bytes"},   {"live_bytes", "live_bytes"},
        {"live_blocks", "live_blocks"}, {"total_bytes", "total_bytes"},
        {"allocations", "allocations"}, {"frees", "frees"}};
    struct subject subject;
    char message[256];
    yajl_val root;
    yajl_val contexts;
    yajl_val frames;
    (void)state;
    open_example(&subject);
    strcpy(subject.model->header.executable, "/bin/\xff\xe2\x82\xac\x01\"");
    report_json(&subject.report);
    root = yajl_tree_parse(text_of(&subject), message, sizeof message);
    assert_non_null(root);
    contexts = array(root, "contexts", 3);
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        assert_true(member(root, totals[i][0]) == sum(contexts, totals[i][1]));
    }
    assert_int_equal(member(root, "lost"), 0);
    assert_int_equal(sum(array(root, "mappings", 1), "live_bytes"), 4096);
    assert_int_equal(sum(array(root, "pools", 1), "live_bytes"), 32);
    assert_int_equal(sum(array(root, "threads", 2), "freed_for_others"), 1);
    array(root, "timeline", 5); /* the start, three samples, the end */
    array(root, "modules", 2);
    frames = array(YAJL_GET_ARRAY(contexts)->values[0], "frames", 3);
    assert_int_equal(member(YAJL_GET_ARRAY(frames)->values[0], "offset"), 0x302f);
    expect(&subject, "\"program\": \"/bin/\xef\xbf\xbd\xe2\x82\xac\\u0001\\\"\"");
    yajl_tree_free(root);
    close_subject(&subject);
}

static void csv(void **state) {
    struct subject subject;
    size_t lines = 0;
    (void)state;
    open_example(&subject);
    report_csv(&subject.report);
    for (const char *at = text_of(&subject); *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 6);
    expect(&subject, "\"heap\",300,3,300,500,5,2,1,\"libother.so.1+0x302f; example+0x201f; "
                     "example+0x100f\"\r\n");
    expect(&subject, "\"arena\",32,1,");
    close_subject(&subject);
}

static void summary(void **state) {
    struct subject subject;
    (void)state;
    open_example(&subject);
    strcpy(subject.model->damage, "cut off at byte 5 of 6");
    report_summary(&subject.report);
    report_warnings(&subject.report);
    report_threads(&subject.report);
    expect(&subject, "example --fast");
    expect(&subject, "4242, ended after 2.5 s");
    expect(&subject, "1.3 KiB (1,300 bytes)");
    expect(&subject, "1.3 KiB (1,300 bytes in 5 blocks)");
    expect(&subject, "8 (1.5 KiB in total, 193 B on average), frees 3");
    expect(&subject, "4.0 KiB live at the end in 1");
    expect(&subject, "The profile is damaged: cut off at byte 5 of 6.");
    expect(&subject, "worker \"2\" (ended)");
    close_subject(&subject);
}

/* Deeper than any stack of ours, each frame allocating; and every kind of broken node. */
static void deep_and_broken(void **state) {
    enum { LEAVES = 3 };
    struct builder *builder = builder_new();
    struct subject subject;
    uint32_t parent = 0;
    (void)state;
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        struct memtrace_node *tree = builder_tree(builder, leaf);
        struct memtrace_cell *cells = builder_ledger(builder, 1, leaf);
        for (uint32_t place = 4; place < MEMTRACE_LEAF_ITEMS; place++) {
            tree[place] = (struct memtrace_node){builder_frame(0, 0x5000 + place % 3), parent, 0};
            cells[place] = (struct memtrace_cell){16, 1, 0, 0, 0, 0, 0, 0};
            parent = leaf * MEMTRACE_LEAF_ITEMS + place;
        }
        tree[500].frame = 0; /* never written, but counted */
        tree[600].frame = 7; /* a class of the future */
        tree[601].frame = MEMTRACE_FRAME_UNKNOWN;
    }
    open_subject(&subject, builder);
    free(builder);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        for (int up = 0; up < 2; up++) {
            subject.report.options = (struct report_options){.bottom_up = up, .min_percent = up};
            report_tree(&subject.report, metric);
        }
        report_flat(&subject.report, metric);
    }
    subject.report.options = (struct report_options){.limit = 3, .depth = 1};
    report_paths(&subject.report, METRIC_LEAKED);
    expect(&subject, "more frames)");
    close_subject(&subject);
}

static void empty(void **state) {
    struct builder *builder = builder_new();
    struct subject subject;
    (void)state;
    open_subject(&subject, builder);
    free(builder);
    report_summary(&subject.report);
    report_tree(&subject.report, METRIC_MAXIMUM);
    report_flat(&subject.report, METRIC_LEAKED);
    report_paths(&subject.report, METRIC_LEAKED);
    report_json(&subject.report);
    expect(&subject, "\"allocations\": 0");
    close_subject(&subject);
}

static void numbers(void **state) {
    struct number buffer;
    (void)state;
    assert_string_equal(number_bytes(&buffer, 0), "0 B");
    assert_string_equal(number_bytes(&buffer, 1023), "1023 B");
    assert_string_equal(number_bytes(&buffer, 1024), "1.0 KiB");
    assert_string_equal(number_bytes(&buffer, 1024 * 1024 - 1), "1.0 MiB");
    assert_string_equal(number_bytes(&buffer, 12903424), "12.3 MiB");
    assert_string_equal(number_bytes(&buffer, UINT64_MAX), "16.0 EiB");
    assert_string_equal(number_count(&buffer, 0), "0");
    assert_string_equal(number_count(&buffer, 999), "999");
    assert_string_equal(number_count(&buffer, 1000), "1,000");
    assert_string_equal(number_count(&buffer, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(number_items(&buffer, 0, "block"), "0 blocks");
    assert_string_equal(number_items(&buffer, 1, "smaller path"), "1 smaller path");
    assert_string_equal(number_items(&buffer, 1, "process"), "1 process");
    assert_string_equal(number_items(&buffer, UINT64_MAX, "short-lived process"),
                        "18,446,744,073,709,551,615 short-lived processes");
    assert_string_equal(number_change(&buffer, 0), "0 B");
    assert_string_equal(number_change(&buffer, -2048), "-2.0 KiB");
    assert_string_equal(number_change(&buffer, INT64_MIN), "-8.0 EiB");
    assert_string_equal(number_percent(&buffer, 1, 0), "-");
    assert_string_equal(number_percent(&buffer, 1, 100000), "<0.1%");
    assert_string_equal(number_percent(&buffer, 1, 3), "33.3%");
    assert_string_equal(number_duration(&buffer, 1500000), "1.5 ms");
    assert_string_equal(number_duration(&buffer, UINT64_C(125000000000)), "2 min 5 s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_down),
        cmocka_unit_test(bottom_up),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(flat),
        cmocka_unit_test(frames_without_lines),
        cmocka_unit_test(json),
        cmocka_unit_test(csv),
        cmocka_unit_test(summary),
        cmocka_unit_test(deep_and_broken),
        cmocka_unit_test(empty),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
