/* SPDX-License-Identifier: MIT */
/* recording_test.c: analyze/read/recording.c on whole, growing, cut, damaged and foreign files. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/read/budget.h"
#include "analyze/read/embedded.h"
#include "analyze/read/recording.h"
#include "tests/unit/recording_builder.h"

#include <sys/mman.h>

/* The file under test lies in memory. */
static char path[64];

static void write_file(const void *bytes, size_t size) {
    recording_build_write(bytes, size, path);
}

struct contents {
    size_t blocks;
    size_t unreadable; /* found damaged only when they were read */
    size_t events;
    size_t nodes;
    uint64_t checksum; /* of all that was read, in its order */
};

static void mix(struct contents *contents, uint64_t value) {
    contents->checksum = (contents->checksum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

static void read_events(const struct memtrace_block_header *block,
                        const struct recording_buffer *buffer, struct contents *contents) {
    struct event_decoder decoder;
    struct event event;
    assert_int_equal(event_decoder_start(&decoder, block, buffer->bytes, buffer->size), 0);
    while (event_decoder_next(&decoder, &event) == 1) {
        contents->events++;
        mix(contents, event.kind + event.size + event.block.number + event.time_ns);
    }
    event_decoder_end(&decoder);
}

/* Everything in an open recording. */
static struct contents read_all(const struct recording *recording) {
    struct contents contents = {.blocks = recording->block_count};
    struct recording_buffer buffer = {0};
    struct memtrace_node *nodes;
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct recording_entry *entry = &recording->blocks[i];
        struct error error = {""};
        assert_true(i == 0 || entry->offset > entry[-1].offset);
        if (recording_payload(recording, i, &buffer, &error) != 0) {
            assert_true(error.message[0] != '\0');
            contents.unreadable++;
            continue;
        }
        mix(&contents, entry->block.kind);
        if (entry->block.kind == MEMTRACE_BLOCK_EVENTS) {
            read_events(&entry->block, &buffer, &contents);
        }
    }
    recording_buffer_free(&buffer);
    assert_int_equal(recording_nodes(recording, &nodes, &contents.nodes, NULL), 0);
    for (size_t i = 0; i < contents.nodes; i++) {
        mix(&contents, nodes[i].frame + nodes[i].parent);
    }
    free(nodes);
    return contents;
}

/* Opens and reads everything. -1: it does not open, which an error tells. */
static int use(struct contents *contents, char damage[256]) {
    struct error error = {""};
    struct recording *recording = recording_open(path, &error);
    if (recording == NULL) {
        assert_true(error.message[0] != '\0');
        return -1;
    }
    *contents = read_all(recording);
    strcpy(damage, recording->damage);
    assert_true((recording->damaged_blocks == 0) == (strstr(damage, "damaged") == NULL));
    recording_close(recording);
    return 0;
}

static struct recording_build example(bool index) {
    struct recording_build build = {.raw = true};
    recording_build_example(&build);
    if (index) {
        recording_build_index(&build);
    }
    write_file(build.bytes, build.size);
    return build;
}

static void whole(void **state) {
    struct recording_build build = {0};
    struct error error;
    struct recording *recording;
    struct contents contents;
    (void)state;
    recording_build_example(&build); /* compressed */
    recording_build_index(&build);
    write_file(build.bytes, build.size);
    assert_true(recording_is(path));
    assert_false(recording_is("/proc/self/exe"));
    assert_false(recording_is(MEMTRACE_BINARY_DIR "/nowhere"));
    recording = recording_open(path, &error);
    assert_non_null(recording);
    assert_string_equal(recording->damage, "");
    assert_true(recording->closed);
    assert_int_equal(recording->block_count, build.count);
    assert_string_equal(recording->program.executable, "/usr/bin/example");
    assert_int_equal(recording->program.pid, 4242);
    contents = read_all(recording);
    assert_int_equal(contents.events, 350);
    assert_int_equal(contents.nodes, 36);
    assert_int_equal(contents.unreadable, 0);
    assert_int_equal(recording_refresh(recording, &error), 0);
    assert_true(recording->closed);
    assert_int_equal(recording->block_count, build.count);
    recording_close(recording);
    recording_build_free(&build);
}

/* With and without an index, stored plainly and compressed, a reader finds the same. */
static void same_without_index(void **state) {
    struct contents contents[4];
    char damage[256];
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct recording_build build = {.raw = i & 1};
        recording_build_example(&build);
        if (i & 2) {
            recording_build_index(&build);
        }
        write_file(build.bytes, build.size);
        assert_int_equal(use(&contents[i], damage), 0);
        assert_string_equal(damage, "");
        assert_int_equal(contents[i].blocks, build.count);
        assert_int_equal(contents[i].events, 350);
        recording_build_free(&build);
    }
    assert_int_equal(contents[0].checksum, contents[1].checksum);
    assert_int_equal(contents[2].checksum, contents[3].checksum);
}

/* Where the first `count` blocks end. */
static size_t block_end(const struct recording_build *build, size_t count) {
    const struct memtrace_index_entry *last = &build->entries[count - 1];
    return last->offset + block_size(&last->block);
}

static size_t whole_blocks(const struct recording_build *build, size_t size) {
    size_t count = 0;
    while (count < build->count && block_end(build, count + 1) <= size) {
        count++;
    }
    return count;
}

/* All whole blocks before the cut are there, and the cut is told. */
static void cut_at_every_byte(void **state) {
    struct recording_build build = example(true);
    size_t first = build.entries[1].offset; /* the first PROGRAM block is whole */
    (void)state;
    for (size_t cut = 0; cut < build.size;
         cut +=
         cut < 64 || cut + 17000 > build.size || (cut > first && cut < first + 9000) ? 1 : 61) {
        struct contents contents;
        char damage[256];
        write_file(build.bytes, cut);
        if (cut < first) {
            assert_int_equal(use(&contents, damage), -1);
            continue;
        }
        assert_int_equal(use(&contents, damage), 0);
        assert_int_equal(contents.blocks, whole_blocks(&build, cut));
        assert_int_equal(contents.unreadable, 0);
        assert_true((damage[0] == '\0') == (cut == block_end(&build, contents.blocks)));
    }
    recording_build_free(&build);
}

/* A flipped bit is told, or what is read is as before (padding, reserved bytes). */
static void damage_in_every_byte(void **state) {
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct recording_build build = example(index == 1);
        struct contents before;
        char damage[256];
        assert_int_equal(use(&before, damage), 0);
        for (size_t i = 0; i < build.size; i++) {
            struct contents after;
            if (i > 400 && i + 400 < build.entries[1].offset) {
                i += 97; /* the PROGRAM block is large and dull */
            }
            if (i > build.entries[build.count - 1 - (size_t)index].offset + 400) {
                i += 97;
            }
            if (i >= build.size) {
                break;
            }
            build.bytes[i] ^= (unsigned char)(1u << i % 8);
            write_file(build.bytes, build.size);
            if (use(&after, damage) == 0 && damage[0] == '\0' && after.unreadable == 0) {
                assert_int_equal(after.checksum, before.checksum);
                assert_int_equal(after.blocks, before.blocks);
            }
            build.bytes[i] ^= (unsigned char)(1u << i % 8);
        }
        recording_build_free(&build);
    }
}

/* One block is lost by damage, the others are found again behind it. */
static void goes_on_after_damage(void **state) {
    struct recording_build build = example(false);
    struct error error;
    (void)state;
    for (size_t i = 1; i + 1 < build.count; i++) {
        for (size_t byte = 0; byte < 81; byte++) { /* the header, and one of the payload */
            unsigned char *at = build.bytes + build.entries[i].offset + byte;
            struct recording *recording;
            char expected[64];
            *at ^= 0x40;
            write_file(build.bytes, build.size);
            recording = recording_open(path, &error);
            assert_non_null(recording);
            assert_int_equal(recording->block_count, build.count - 1);
            assert_int_equal(recording->damaged_blocks, 1);
            snprintf(expected, sizeof expected, "1 damaged block left out, the first at byte %llu",
                     (unsigned long long)build.entries[i].offset);
            assert_string_equal(recording->damage, expected);
            recording_close(recording);
            *at ^= 0x40;
        }
    }
    recording_build_free(&build);
}

/* An index that says something else than the blocks is not believed. */
static void wrong_index(void **state) {
    static const size_t fields[] = {0, 8, 12, 16, 20, 24, 48, 52, 76};
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct recording_build build = {0};
        struct contents contents;
        char damage[256];
        recording_build_example(&build);
        ((unsigned char *)&build.entries[3])[fields[i]] ^= 8;
        recording_build_index(&build);
        write_file(build.bytes, build.size);
        assert_int_equal(use(&contents, damage), 0);
        /* Sizes that do not add up: the index as a whole. Else: the one block. */
        assert_string_equal(damage, "");
        assert_true(contents.events == 350 || (contents.events == 250 && contents.unreadable == 1));
        recording_build_free(&build);
    }
}

/* A file that grows under its reader, byte by byte in the end. */
static void live(void **state) {
    struct recording_build build = example(true);
    size_t size = build.entries[3].offset;
    struct error error;
    struct recording *recording;
    int fd;
    (void)state;
    write_file(build.bytes, size);
    recording = recording_open(path, &error);
    fd = open(path, O_WRONLY | O_APPEND);
    assert_non_null(recording);
    assert_string_equal(recording->program.executable, "/usr/bin/begun");
    while (size < build.size) {
        size_t step = size + 50 < build.entries[8].offset ? 50 : 1;
        assert_int_equal(write(fd, build.bytes + size, step), step);
        size += step;
        assert_int_equal(recording_refresh(recording, &error), 0);
        assert_int_equal(recording->block_count, whole_blocks(&build, size));
        assert_int_equal(recording->damaged_blocks, 0);
    }
    assert_true(recording->closed);
    assert_string_equal(recording->damage, "");
    assert_string_equal(recording->program.executable, "/usr/bin/example");
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_int_equal(recording_refresh(recording, &error), -1);
    close(fd);
    recording_close(recording);
    recording_build_free(&build);
}

/* Sizes and counts that a checksum vouches for, and that are lies all the same. */
static void lying_sizes(void **state) {
    struct recording_build build = {.raw = true};
    struct contents contents;
    char damage[256];
    struct memtrace_block_header *block;
    size_t offset;
    (void)state;
    recording_build_header(&build);
    recording_build_program(&build, "/bin/true");
    offset = build.size;
    recording_build_items(&build, MEMTRACE_BLOCK_NODES, "0123456789", 10, 1);
    block = (void *)(build.bytes + offset);
    block->raw_size = MEMTRACE_BLOCK_MOST; /* 10 bytes are no zstd frame of 64 MiB */
    block->checksum = block_checksum(block, block + 1);
    write_file(build.bytes, build.size);
    assert_int_equal(use(&contents, damage), 0);
    assert_int_equal(contents.unreadable, 1);
    block->raw_size = MEMTRACE_BLOCK_MOST + 1;
    block->checksum = block_checksum(block, block + 1);
    write_file(build.bytes, build.size);
    assert_int_equal(use(&contents, damage), 0);
    assert_int_equal(contents.blocks, 1);
    assert_true(strstr(damage, "cut off at byte") != NULL);
    recording_build_free(&build);
}

static void nodes_out_of_bounds(void **state) {
    static const struct memtrace_recording_node nodes[] = {
        {.frame = 1, .parent = 0, .id = 5},       {.frame = 2, .parent = 5, .id = 5},
        {.frame = 3, .parent = 0, .id = 1 << 24}, {.frame = 4, .parent = 7, .id = 6},
        {.frame = 5, .parent = 5, .id = 9},
    };
    struct recording_build build = {0};
    struct memtrace_node *found;
    struct recording *recording;
    struct error error;
    size_t count;
    (void)state;
    recording_build_header(&build);
    recording_build_program(&build, "/bin/true");
    recording_build_nodes(&build, nodes, 5);
    write_file(build.bytes, build.size);
    recording = recording_open(path, &error);
    assert_non_null(recording);
    assert_int_equal(recording_nodes(recording, &found, &count, &error), 0);
    assert_int_equal(count, 10);
    assert_int_equal(found[5].frame, 1);
    assert_int_equal(found[6].frame, 0);
    assert_int_equal(found[9].parent, 5);
    free(found);
    recording_close(recording);
    recording_build_free(&build);
}

/* Blocks of kinds that are not known yet do not stand in the way. */
static void unknown_kind(void **state) {
    struct recording_build build = {0};
    struct contents contents;
    char damage[256];
    (void)state;
    recording_build_header(&build);
    recording_build_items(&build, 999, "something", 9, 1);
    recording_build_program(&build, "/bin/true");
    recording_build_index(&build);
    write_file(build.bytes, build.size);
    assert_int_equal(use(&contents, damage), 0);
    assert_int_equal(contents.blocks, 3);
    recording_build_free(&build);
}

static void expect_error(const void *bytes, size_t size, const char *part) {
    struct error error = {""};
    write_file(bytes, size);
    assert_null(recording_open(path, &error));
    assert_non_null(strstr(error.message, part));
}

static void not_a_recording(void **state) {
    struct recording_build build = example(true);
    struct memtrace_recording_header *header = (void *)build.bytes;
    struct error error = {""};
    (void)state;
    expect_error("", 0, "it is empty");
    expect_error("something else", 14, "is not a MemTrace recording");
    expect_error(build.bytes, 20, "inside its header, at byte 20 of 64");
    expect_error(build.bytes, 64, "does not say which program");
    header->version = 77;
    expect_error(build.bytes, build.size, "recording format 77");
    header->version = MEMTRACE_RECORDING_VERSION;
    header->byte_order = __builtin_bswap32(MEMTRACE_BYTE_ORDER);
    expect_error(build.bytes, build.size, "other byte order");
    header->byte_order = 5;
    expect_error(build.bytes, build.size, "damaged header");
    assert_null(recording_open(MEMTRACE_BINARY_DIR "/nowhere/file", &error));
    assert_non_null(strstr(error.message, "cannot open " MEMTRACE_BINARY_DIR "/nowhere/file"));
    assert_null(recording_open("/", &error));
    assert_non_null(strstr(error.message, "a folder"));
    recording_build_free(&build);
}

/* Few bytes that say that they are many: tables and files that are all alike. */
static void more_than_it_can_need(void **state) {
    enum { PIECE = 8 << 20, TABLES = 6, PIECES = 40 };
    struct recording_build build = {0};
    struct recording *recording;
    struct error error = {""};
    size_t count;
    char *zeros = calloc(1, PIECE);
    struct memtrace_embedded *file = (void *)zeros;
    char folder[] = "/tmp/recording_test.XXXXXX";
    (void)state;
    assert_non_null(zeros);
    assert_non_null(mkdtemp(folder));
    recording_build_header(&build);
    recording_build_program(&build, "/bin/true");
    for (int i = 0; i < TABLES; i++) {
        recording_build_items(&build, MEMTRACE_BLOCK_SMAPS, zeros, 1, PIECE);
    }
    assert_true(build.size < 100000);
    expect_error(build.bytes, build.size, "--memory-limit SIZE reads it");
    budget_allow((uint64_t)PIECE * TABLES + 100000);
    write_file(build.bytes, build.size);
    recording = recording_open(path, &error);
    assert_non_null(recording);
    assert_int_equal(recording->block_count, TABLES + 1);
    recording_close(recording);
    budget_allow(0);
    recording_build_free(&build);

    recording_build_header(&build);
    recording_build_program(&build, "/bin/true");
    *file = (struct memtrace_embedded){
        .what = MEMTRACE_EMBEDDED_WHOLE, .size = PIECE - 1000, .build_id_size = 20, .path_size = 7};
    strcpy(zeros + sizeof *file, "/x/one");
    for (int i = 0; i < PIECES; i++) {
        recording_build_items(&build, MEMTRACE_BLOCK_FILE, zeros, 1, PIECE - 2000);
    }
    write_file(build.bytes, build.size);
    recording = recording_open(path, &error);
    assert_non_null(recording);
    assert_int_equal(embedded_extract(recording, folder, 0, &count, &error), -1);
    assert_non_null(strstr(error.message, "--max-size SIZE writes more"));
    assert_int_equal(rmdir(folder), 0); /* nothing was written */
    assert_int_equal(embedded_extract(recording, folder, 1000, &count, &error), -1);
    recording_close(recording);
    recording_build_free(&build);
    free(zeros);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_it_can_need), cmocka_unit_test(whole),
        cmocka_unit_test(same_without_index),    cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(damage_in_every_byte),  cmocka_unit_test(goes_on_after_damage),
        cmocka_unit_test(wrong_index),           cmocka_unit_test(live),
        cmocka_unit_test(lying_sizes),           cmocka_unit_test(nodes_out_of_bounds),
        cmocka_unit_test(unknown_kind),          cmocka_unit_test(not_a_recording),
    };
    int fd = memfd_create("recording_test", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
