/* SPDX-License-Identifier: MIT */
/* transform_test.c: collect/transform: what a recording that is written anew says of its program.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/window/wholemodel.h"
#include "collect/transform/anonymize.h"
#include "tests/unit/recording_builder.h"

static char paths[2][64]; /* what is there, and what is made of it */

static int make_paths(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/transform_test.%ld.%d", (long)getpid(), i);
    }
    return 0;
}

static int remove_paths(void **state) {
    (void)state;
    unlink(paths[0]);
    unlink(paths[1]);
    return 0;
}

static struct recording *opened(struct recording_build *build) {
    struct error error = {""};
    struct recording *recording;
    recording_build_index(build);
    recording_build_write(build->bytes, build->size, paths[0]);
    recording_build_free(build);
    recording = recording_open(paths[0], &error);
    assert_non_null(recording);
    return recording;
}

static struct recording *transformed(struct timeorder_parts parts,
                                     const struct transform_step *step) {
    struct error error = {""};
    const struct transform_options options = {.level = 1};
    struct transform_result result;
    struct recording *recording;
    assert_int_equal(transform_run(&parts, 1, paths[1], step, &options, &result, &error), 0);
    recording = recording_open(paths[1], &error);
    assert_non_null(recording);
    return recording;
}

static size_t count_of(const struct recording *recording, enum memtrace_block_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < recording->block_count; i++) {
        count += recording->blocks[i].block.kind == kind;
    }
    return count;
}

/* As of a program that died early. What lies before the parts in memory is none of theirs. */
static void what_none_of_the_parts_has(void **state) {
    const struct transform_step step = {0};
    struct recording_build with = {0};
    struct recording_build without = {0};
    const struct recording *parts[2];
    struct recording *made;
    (void)state;
    recording_build_example(&with);
    parts[0] = opened(&with);
    assert_int_equal(count_of(parts[0], MEMTRACE_BLOCK_THREADS), 1);
    recording_build_header(&without);
    recording_build_program(&without, "/usr/bin/example");
    parts[1] = opened(&without);
    made = transformed((struct timeorder_parts){&parts[1], 1}, &step);
    assert_int_equal(count_of(made, MEMTRACE_BLOCK_PROGRAM), 1);
    assert_int_equal(count_of(made, MEMTRACE_BLOCK_THREADS), 0);
    recording_close(made);
    recording_close((struct recording *)parts[0]);
    recording_close((struct recording *)parts[1]);
}

/* Of one that started others, which were not followed, and whose malloc is of a library. */
static struct recording *hidden(uint32_t place, const char *name) {
    struct error error = {""};
    struct recording_build build = {0};
    struct memtrace_header program = {.version = MEMTRACE_FORMAT_VERSION,
                                      .header_size = MEMTRACE_HEADER_SIZE,
                                      .byte_order = MEMTRACE_BYTE_ORDER,
                                      .end = MEMTRACE_HEADER_SIZE,
                                      .state = MEMTRACE_STATE_ENDED,
                                      .pid = 4242,
                                      .parent_pid = 4241,
                                      .uid = 1000,
                                      .collector_pid = 4243,
                                      .process_start_ticks = 77,
                                      .shadow_heap = 4096,
                                      .pool_heap = 8192,
                                      .owner = {1, 1000, 1000},
                                      .not_followed = {1, 2, 3, 255},
                                      .run = {.not_reached = 5},
                                      .malloc_by = {.place = place}};
    struct anonymize anonymize = {.fakenames = fakenames_new(NULL, 0)};
    struct names *names;
    struct model *model;
    struct recording *recording;
    struct recording *made;
    struct transform_step step;
    assert_non_null(anonymize.fakenames);
    memcpy(program.magic, MEMTRACE_MAGIC, sizeof program.magic);
    snprintf(program.malloc_by.name, sizeof program.malloc_by.name, "%s", name);
    recording_build_header(&build);
    recording_build_items(&build, MEMTRACE_BLOCK_PROGRAM, &program, sizeof program, 1);
    recording = opened(&build);
    const struct timeorder_parts parts = {(const struct recording *const *)&recording, 1};
    anonymize.model = model = model_replay(parts, NULL, &error);
    assert_non_null(model);
    anonymize.names = names = names_open(model, NULL, &error);
    assert_non_null(names);
    step = anonymize_step(&anonymize);
    made = transformed(parts, &step);
    names_close(names);
    model_free(model);
    recording_close(recording);
    return made;
}

static void nothing_tells_who_ran_it_and_where(void **state) {
    static const struct {
        uint32_t place;
        const char *name, *left;
    } names[] = {{MEMTRACE_MALLOC_LIBRARY, "libsecret.so", ""},
                 {MEMTRACE_MALLOC_INSIDE, "jemalloc in libsecret.so", "jemalloc"},
                 {MEMTRACE_MALLOC_PROGRAM, "jemalloc", "jemalloc"}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        static const uint8_t none[MEMTRACE_NOT_FOLLOWED_KINDS];
        struct recording *made = hidden(names[i].place, names[i].name);
        const struct memtrace_header *program = &made->program;
        char left[sizeof program->malloc_by.name] = "";
        memcpy(left, names[i].left, strlen(names[i].left));
        assert_memory_equal(program->malloc_by.name, left, sizeof left);
        assert_memory_equal(program->not_followed, none, sizeof none);
        assert_int_equal(program->run.not_reached, 0);
        assert_int_equal(program->parent_pid | program->uid | program->collector_pid, 0);
        assert_int_equal(program->process_start_ticks, 0);
        assert_int_equal(program->shadow_heap | program->pool_heap, 0);
        assert_int_equal(program->owner.is_set | program->owner.uid | program->owner.gid, 0);
        recording_close(made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_none_of_the_parts_has),
        cmocka_unit_test(nothing_tells_who_ran_it_and_where),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
