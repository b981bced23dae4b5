/* SPDX-License-Identifier: MIT */
/* framenames_test.c: names that a recording carries itself, and that they win over symbols. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/names.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#include <sys/mman.h>

#define FRAME(address) (UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (address))

static char path[64];

/* Texts: "" at 0, "inner" 1, "outer" 7, "a.c" 13, "b.c" 17. */
static const char texts[] = "\0inner\0outer\0a.c\0b.c";

static void add_names(struct recording_build *build, const struct memtrace_frame_name *items,
                      size_t count, size_t claimed) {
    unsigned char payload[4096];
    size_t array = count * sizeof *items;
    memcpy(payload, items, array);
    memcpy(payload + array, texts, sizeof texts);
    recording_build_block(
        build,
        (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_NAMES, .items = (uint32_t)claimed},
        payload, array + sizeof texts);
}

static struct recording *open_with(void (*fill)(struct recording_build *build)) {
    struct recording_build build = {0};
    struct recording *recording;
    recording_build_header(&build);
    recording_build_program(&build, "/bin/imported");
    recording_build_tree(&build);
    fill(&build);
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
    recording = recording_open(path, NULL);
    assert_non_null(recording);
    return recording;
}

static void two_blocks(struct recording_build *build) {
    const struct memtrace_frame_name first[] = {{FRAME(0x1010), 7, 17, 20, 0},
                                                {FRAME(0x1000), 1, 13, 10, 3},
                                                {FRAME(0x1000), 7, 17, 11, 0},
                                                {FRAME(0x1020), 0, 0, 0, 0}};
    const struct memtrace_frame_name second[] = {{FRAME(0x1000), 7, 13, 99, 0},
                                                 {FRAME(0x1030), 1, 900, 5, 0}};
    add_names(build, first, 4, 4);
    add_names(build, second, 2, 2);
    add_names(build, second, 2, 500); /* more than there are: left out */
}

static void nothing(struct recording_build *build) {
    (void)build;
}

static void test_read(void **state) {
    const struct recording *recording = open_with(two_blocks);
    struct framenames names;
    const struct framename *found;
    size_t count;
    (void)state;
    assert_int_equal(framenames_read(&names, &recording, 1, NULL), 0);
    found = framenames_find(&names, FRAME(0x1000), &count);
    assert_non_null(found);
    assert_int_equal(count, 2);
    assert_string_equal(found[0].function, "inner");
    assert_string_equal(found[0].file, "a.c");
    assert_int_equal(found[0].line, 10);
    assert_int_equal(found[0].column, 3);
    assert_string_equal(found[1].function, "outer");
    found = framenames_find(&names, FRAME(0x1020), &count);
    assert_non_null(found);
    assert_int_equal(count, 1);
    assert_null(found->function);
    assert_null(found->file);
    found = framenames_find(&names, FRAME(0x1030), &count);
    assert_non_null(found);
    assert_string_equal(found->function, "inner");
    assert_null(found->file); /* behind the texts */
    assert_null(framenames_find(&names, FRAME(0x1040), &count));
    assert_int_equal(count, 0);
    framenames_free(&names);
    recording_close((struct recording *)recording);
}

static void test_none(void **state) {
    const struct recording *recording = open_with(nothing);
    struct framenames names;
    size_t count;
    (void)state;
    assert_int_equal(framenames_read(&names, &recording, 1, NULL), 0);
    assert_null(framenames_find(&names, FRAME(0x1000), &count));
    framenames_free(&names);
    assert_int_equal(framenames_read(&names, NULL, 0, NULL), 0); /* a profile */
    framenames_free(&names);
    recording_close((struct recording *)recording);
}

/* What names_open() makes of them; frames without given names are looked up as ever. */
static void test_names(void **state) {
    const struct recording *recording = open_with(two_blocks);
    struct framenames given;
    struct names_options options = {.given = &given};
    struct model *model = model_replay((struct timeorder_parts){&recording, 1}, NULL, NULL);
    const struct names_frame *frames;
    struct names *names;
    size_t count;
    (void)state;
    assert_non_null(model);
    assert_int_equal(framenames_read(&given, &recording, 1, NULL), 0);
    names = names_open(model, &options, NULL);
    assert_non_null(names);
    frames = names_frames(names, FRAME(0x1000), &count);
    assert_int_equal(count, 2);
    assert_string_equal(frames[0].function, "inner");
    assert_true(frames[0].inlined);
    assert_string_equal(frames[1].function, "outer");
    assert_false(frames[1].inlined);
    assert_int_not_equal(frames[0].function_key, frames[1].function_key);
    frames = names_frames(names, FRAME(0x1020), &count);
    assert_null(frames[0].function);
    frames = names_frames(names, FRAME(0x1040), &count);
    assert_int_equal(count, 1);
    assert_null(frames[0].function);
    names_close(names);
    framenames_free(&given);
    model_free(model);
    recording_close((struct recording *)recording);
}

static int make_file(void **state) {
    int fd = memfd_create("framenames_test", 0);
    (void)state;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, make_file, NULL);
}
