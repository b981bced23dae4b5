/* SPDX-License-Identifier: MIT */
/* profile_test.c: analyze/read/profile.c on whole, cut, damaged and foreign files. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/model.h"
#include "analyze/read/profile.h"
#include "memtrace/events.h"
#include "tests/unit/profile_builder.h"

#include <sys/stat.h>
#include <unistd.h>

/* Opens, loads and forgets; 0 if it opened. The error must be a line, the model consistent. */
static int use(const void *bytes, size_t size) {
    struct error error = {""};
    struct profile *profile = profile_wrap(bytes, size, "test", &error);
    struct model *model;
    uint64_t live = 0;
    if (profile == NULL) {
        assert_true(error.message[0] != '\0');
        return -1;
    }
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        assert_true(segment->offset + segment->size <= size);
        assert_true((uint64_t)segment->item_size * segment->item_count <= segment->size);
    }
    model = model_load(profile, &error);
    assert_non_null(model);
    for (size_t i = 0; i < model->node_count; i++) {
        assert_true(model->nodes[i].parent < i || (i == 0 && model->nodes[i].parent == 0));
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        assert_true(context->id < model->node_count && context->path < model->node_count);
        assert_true(context->frees <= context->allocations ||
                    context->frame == MEMTRACE_FRAME_BEFORE);
        assert_true(i == 0 || model->contexts[i - 1].id < context->id);
        model_hash(model, context->id);
        model_class_name(model, context);
        if (context->class == MODEL_HEAP) {
            live = live + context->live_bytes < live ? UINT64_MAX : live + context->live_bytes;
        }
    }
    for (size_t i = 0; i < model->node_count; i++) {
        assert_true(model_place(model, model->nodes[i].frame).module < model->module_count);
    }
    if (model->context_count != 0 && live != 0) {
        assert_true(live == model->totals.live_bytes);
    }
    model_free(model);
    profile_close(profile);
    return 0;
}

static void whole(void **state) {
    struct builder *builder = builder_new();
    struct error error;
    struct profile *profile;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    assert_non_null(profile);
    assert_string_equal(profile->damage, "");
    assert_int_equal(profile->segment_count, 9);
    assert_int_equal(profile->header.pid, 4242);
    assert_null(profile_item(profile, &profile->segments[1], 3));
    assert_non_null(profile_item(profile, &profile->segments[1], 4));
    assert_null(profile_item(profile, &profile->segments[1], MEMTRACE_LEAF_ITEMS));
    profile_close(profile);
    free(builder);
}

/* Whatever stands in a header. */
static void strings_that_do_not_end(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_header *header = builder_header(builder);
    struct profile *profile;
    struct error error;
    const struct memtrace_recording *recording;
    (void)state;
    memset(header->name, 'A', sizeof header->name);
    memset(header->recording, 'A', sizeof header->recording);
    memset(header->executable, 'A', sizeof header->executable);
    memset(header->command, 'A', sizeof header->command);
    memset(header->output, 'A', sizeof header->output);
    memset(header->log, 'A', sizeof header->log);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    assert_non_null(profile);
    header = &profile->header;
    recording = (const void *)header->recording;
    assert_true(strnlen(header->name, sizeof header->name) < sizeof header->name);
    assert_true(strnlen(recording->path, sizeof recording->path) < sizeof recording->path);
    assert_true(strnlen(header->executable, sizeof header->executable) < sizeof header->executable);
    assert_true(strnlen(header->command, sizeof header->command) < sizeof header->command);
    assert_true(strnlen(header->output, sizeof header->output) < sizeof header->output);
    assert_true(strnlen(header->log, sizeof header->log) < sizeof header->log);
    profile_close(profile);
    free(builder);
}

/* A copy of exactly the bytes there are, so that a sanitizer sees each byte read beyond them. */
static void cut_at_every_byte(void **state) {
    struct builder *builder = builder_new();
    size_t size;
    (void)state;
    builder_tree(builder, 0)[10] = (struct memtrace_node){builder_frame(1, 0x1010), 0, 0};
    builder_set_module(builder_modules(builder), 1, 0, "/usr/bin/example");
    builder_segment(builder, MEMTRACE_SEGMENT_LEDGER, 1, 0, sizeof(struct memtrace_cell), 64);
    size = builder_size(builder);
    for (size_t cut = 0; cut < size; cut += cut < 64 || cut >= MEMTRACE_HEADER_SIZE ? 1 : 61) {
        unsigned char *bytes = malloc(cut != 0 ? cut : 1);
        struct profile *profile;
        struct error error;
        memcpy(bytes, builder->bytes, cut);
        assert_int_equal(use(bytes, cut), cut < MEMTRACE_HEADER_SIZE ? -1 : 0);
        profile = profile_wrap(bytes, cut, "test", &error);
        if (profile != NULL) {
            assert_string_not_equal(profile->damage, "");
            profile_close(profile);
        }
        free(bytes);
    }
    free(builder);
}

/* Every byte that holds anything, and the first ones of every table, with bits flipped. */
static void flip_every_byte(void **state) {
    static const unsigned char masks[] = {0x01, 0x80, 0xff};
    struct builder *builder = builder_new();
    size_t size;
    unsigned char *bytes;
    (void)state;
    builder_example(builder, 0x10000000);
    size = builder_size(builder);
    bytes = aligned_alloc(64, (size + 63) & ~(size_t)63);
    memcpy(bytes, builder->bytes, size);
    for (size_t at = 0; at < size; at++) {
        if (bytes[at] == 0 && at % 4096 >= 80 && at >= 300) {
            continue;
        }
        for (size_t i = 0; i < sizeof masks; i++) {
            bytes[at] ^= masks[i];
            use(bytes, size);
            bytes[at] ^= masks[i];
        }
    }
    free(bytes);
    free(builder);
}

static void random_bytes(void **state) {
    struct builder *builder = builder_new();
    unsigned char *bytes = aligned_alloc(64, 128 * 1024);
    unsigned random = 1;
    (void)state;
    builder_example(builder, 0);
    for (int round = 0; round < 300; round++) {
        memcpy(bytes, builder->bytes, 128 * 1024);
        for (int i = 0; i < 200; i++) {
            random = random * 1103515245u + 12345u;
            bytes[MEMTRACE_HEADER_SIZE + (random >> 8) % (128 * 1024 - MEMTRACE_HEADER_SIZE)] =
                (unsigned char)random;
        }
        use(bytes, 128 * 1024);
    }
    free(bytes);
    free(builder);
}

static void expect_error(const void *bytes, size_t size, const char *part) {
    struct error error = {""};
    assert_null(profile_wrap(bytes, size, "file.mtp", &error));
    if (strstr(error.message, part) == NULL || strchr(error.message, '\n') != NULL) {
        fail_msg("\"%s\" lacks \"%s\"", error.message, part);
    }
}

static void foreign_files(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_header *header = builder_header(builder);
    (void)state;
    expect_error("", 0, "is not a MemTrace profile");
    header->version = 7;
    expect_error(builder->bytes, builder_size(builder), "has profile format 7");
    header->version = __builtin_bswap32(1);
    header->byte_order = __builtin_bswap32(MEMTRACE_BYTE_ORDER);
    expect_error(builder->bytes, builder_size(builder), "other byte order");
    header->byte_order = 0;
    header->version = MEMTRACE_FORMAT_VERSION;
    expect_error(builder->bytes, builder_size(builder), "damaged header");
    header->magic[0] = 'X';
    expect_error(builder->bytes, builder_size(builder), "is not a MemTrace profile");
    free(builder);
}

/* A segment that was reserved but never published is stepped over, whatever follows. */
static void unpublished_segment(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_segment *reserved;
    struct profile *profile;
    struct error error;
    (void)state;
    reserved = builder_segment(builder, MEMTRACE_SEGMENT_LEDGER, 1, 0, 64, 1024);
    reserved->magic = 0;
    reserved = builder_segment(builder, MEMTRACE_SEGMENT_LEDGER, 2, 0, 64, 1024);
    memset(reserved, 0, sizeof *reserved);
    builder_tree(builder, 0);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    assert_non_null(profile);
    assert_int_equal(profile->segment_count, 1);
    assert_int_equal(profile->segments[0].kind, MEMTRACE_SEGMENT_TREE);
    assert_string_equal(profile->damage, "");
    profile_close(profile);
    free(builder);
}

static void open_files(void **state) {
    struct builder *builder = builder_new();
    char path[] = "/tmp/memtrace-test-XXXXXX";
    struct profile *profile;
    struct error error;
    int fd = mkstemp(path);
    (void)state;
    builder_example(builder, 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, builder->bytes, builder_size(builder)), builder_size(builder));
    close(fd);
    profile = profile_open(path, &error);
    assert_non_null(profile);
    assert_false(profile->live);
    assert_string_equal(profile->damage, "");
    assert_int_equal(profile_refresh(profile, &error), 0);
    profile_close(profile);

    assert_int_equal(truncate(path, MEMTRACE_HEADER_SIZE + 100), 0);
    profile = profile_open(path, &error);
    assert_non_null(profile);
    assert_non_null(strstr(profile->damage, "cut off at byte 16484 of"));
    profile_close(profile);

    assert_int_equal(truncate(path, 100), 0);
    assert_null(profile_open(path, &error));
    assert_non_null(strstr(error.message, "cut off inside its header"));
    unlink(path);
    assert_null(profile_open(path, &error));
    assert_non_null(strstr(error.message, "No such file"));
    assert_null(profile_open("/tmp", &error));
    assert_non_null(strstr(error.message, "is a folder"));
    assert_null(profile_open("/dev/null", &error));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(profile_open(path, &error)); /* and does not wait for a writer */
    unlink(path);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(strings_that_do_not_end),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(flip_every_byte),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(foreign_files),
        cmocka_unit_test(unpublished_segment),
        cmocka_unit_test(open_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
