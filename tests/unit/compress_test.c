/* SPDX-License-Identifier: MIT */
/* compress_test.c: collect/compress.c and analyze/read/segmentpack.c: what is compressed comes back
 * byte by byte; what was cut, hit or made to do harm afterwards is read as far as it goes. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/model.h"
#include "analyze/read/block.h"
#include "analyze/read/profile.h"
#include "analyze/read/segmentpack.h"
#include "collect/compress.h"
#include "tests/unit/event_stream.h"
#include "tests/unit/profile_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 24 << 20 };

struct image {
    unsigned char *bytes;
    uint64_t size;
};

static struct image image_new(void) {
    struct builder *builder = builder_new();
    struct image image = {calloc(1, MOST), MEMTRACE_HEADER_SIZE};
    memcpy(image.bytes, builder->bytes, MEMTRACE_HEADER_SIZE);
    free(builder);
    return image;
}

static uint64_t *add_segment(struct image *image, uint32_t kind, uint32_t item_size,
                             uint32_t item_count) {
    uint64_t size = ((uint64_t)item_size * item_count + 4095) & ~UINT64_C(4095);
    struct memtrace_segment *segment = (void *)(image->bytes + image->size);
    assert_true(image->size + size <= MOST);
    *segment = (struct memtrace_segment){.magic = MEMTRACE_SEGMENT_MAGIC,
                                         .kind = (uint16_t)kind,
                                         .header_size = sizeof *segment,
                                         .size = size,
                                         .item_size = item_size,
                                         .item_count = item_count};
    image->size += size;
    return (uint64_t *)(segment + 1);
}

static void fill(struct stream *stream, uint64_t *words, size_t bytes) {
    unsigned sparse = (unsigned)stream_below(stream, 4);
    unsigned shift = (unsigned)stream_below(stream, 64);
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        words[i] = stream_below(stream, 1 + sparse) == 0 ? stream_random(stream) >> shift : 0;
    }
}

/* Segments of all kinds and of none, holes, words between them. */
static struct image random_image(uint64_t seed) {
    static const uint32_t sizes[] = {8,  16, 56,  64, 128, 1024, 64, 1,
                                     16, 64, 112, 48, 32,  56,   8,  8};
    struct stream stream = stream_start(seed, 1, 1);
    struct image image = image_new();
    size_t segments = stream_below(&stream, 60);
    for (size_t i = 0; i < segments; i++) {
        uint32_t kind = (uint32_t)stream_below(&stream, sizeof sizes / sizeof sizes[0]);
        uint32_t item_size = stream_below(&stream, 9) == 0 ? 40 : sizes[kind];
        uint64_t *words = add_segment(&image, kind, item_size,
                                      4096 / item_size + (uint32_t)stream_below(&stream, 1024));
        uint64_t bytes = (uint64_t)(image.bytes + image.size - (unsigned char *)words);
        fill(&stream, words, stream_below(&stream, 5) == 0 ? stream_below(&stream, bytes) : bytes);
        if (stream_below(&stream, 5) == 0) {
            fill(&stream, (uint64_t *)(image.bytes + image.size), 4096);
            image.size += stream_below(&stream, 3) * 4096;
        }
    }
    ((struct memtrace_header *)image.bytes)->end = image.size;
    return image;
}

static void temporary(char *path) {
    strcpy(path, "/tmp/compress_test-XXXXXX");
    close(mkstemp(path));
}

static void write_compressed(const struct image *image, const char *path) {
    const struct compress_source source = {image->bytes, -1, image->size};
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(compress_profile(&source, 1, fd), COMPRESS_DONE);
    close(fd);
}

static void assert_same(const struct image *image, const struct profile *profile) {
    struct memtrace_header header = profile->header;
    assert_int_equal(profile->size, image->size);
    assert_int_equal(header.version, ((struct memtrace_header *)image->bytes)->version);
    for (uint64_t at = MEMTRACE_HEADER_SIZE; at < image->size; at += 4096) {
        uint64_t bytes = image->size - at < 4096 ? image->size - at : 4096;
        if (memcmp(profile->bytes + at, image->bytes + at, bytes) != 0) {
            fail_msg("the page at %llu differs", (unsigned long long)at);
        }
    }
}

static void comes_back(void **state) {
    char path[64];
    (void)state;
    temporary(path);
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct image image = random_image(seed);
        struct profile *profile;
        struct error error = {""};
        write_compressed(&image, path);
        profile = profile_open(path, &error);
        assert_string_equal(error.message, "");
        assert_same(&image, profile);
        profile_close(profile);
        free(image.bytes);
    }
    unlink(path);
}

/* From a file that is shorter than it says, as a killed program's. */
static void from_a_file(void **state) {
    struct image image = random_image(5);
    char path[64];
    char source[64];
    struct compress_source from = {NULL, -1, image.size};
    struct profile *profile;
    int fd;
    (void)state;
    temporary(path);
    temporary(source);
    from.fd = open(source, O_RDWR);
    assert_int_equal(write(from.fd, image.bytes, image.size - 5000), image.size - 5000);
    memset(image.bytes + image.size - 5000, 0, 5000);
    fd = open(path, O_WRONLY);
    assert_int_equal(compress_profile(&from, 1, fd), COMPRESS_DONE);
    close(fd);
    close(from.fd);
    profile = profile_open(path, NULL);
    assert_non_null(profile);
    assert_same(&image, profile);
    profile_close(profile);
    unlink(path);
    unlink(source);
    free(image.bytes);
}

/* A tree of many like paths: what is alike takes next to nothing. */
static struct image large_image(void) {
    struct image image = image_new();
    for (uint32_t leaf = 0; leaf < 250; leaf++) {
        struct memtrace_node *nodes = (void *)(image.bytes + image.size);
        struct memtrace_cell *cells;
        add_segment(&image, MEMTRACE_SEGMENT_TREE, sizeof *nodes, MEMTRACE_LEAF_ITEMS);
        cells = (void *)(image.bytes + image.size);
        add_segment(&image, MEMTRACE_SEGMENT_LEDGER, sizeof *cells, MEMTRACE_LEAF_ITEMS);
        ((struct memtrace_segment *)nodes)->index = leaf;
        ((struct memtrace_segment *)cells)->index = leaf;
        for (uint32_t i = MEMTRACE_FIRST_CONTEXT; i < MEMTRACE_LEAF_ITEMS; i++) {
            uint32_t id = leaf * MEMTRACE_LEAF_ITEMS + i;
            nodes[i].frame = 0x1000000400000 + (id * 2654435761u >> 24 & 63) * 16;
            nodes[i].parent = id == MEMTRACE_FIRST_CONTEXT  ? 0
                              : i == MEMTRACE_FIRST_CONTEXT ? id - MEMTRACE_FIRST_CONTEXT - 1
                                                            : id - 1 - id % 3 % (i - 4);
            cells[i].alloc_bytes = 16;
            cells[i].alloc_count = 1;
        }
    }
    ((struct memtrace_header *)image.bytes)->end = image.size;
    return image;
}

static void is_small(void **state) {
    struct image image = large_image();
    struct stat status;
    char path[64];
    (void)state;
    temporary(path);
    write_compressed(&image, path);
    assert_int_equal(stat(path, &status), 0);
    assert_true((uint64_t)status.st_size * 5 < image.size);
    unlink(path);
    free(image.bytes);
}

/* All bytes of a file; the caller frees them. */
static unsigned char *read_all(const char *path, size_t *size) {
    struct stat status;
    int fd = open(path, O_RDONLY);
    unsigned char *bytes;
    assert_int_equal(fstat(fd, &status), 0);
    *size = (size_t)status.st_size;
    bytes = malloc(*size);
    assert_int_equal(read(fd, bytes, *size), *size);
    close(fd);
    return bytes;
}

/* However many threads there were: blocks come in the order of their places. */
static void same_bytes(void **state) {
    struct image image = large_image();
    char path[64];
    unsigned char *first = NULL;
    size_t first_size = 0;
    (void)state;
    temporary(path);
    for (int round = 0; round < 8; round++) {
        size_t size;
        unsigned char *bytes;
        write_compressed(&image, path);
        bytes = read_all(path, &size);
        if (first == NULL) {
            first = bytes;
            first_size = size;
            continue;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
    }
    unlink(path);
    free(first);
    free(image.bytes);
}

/* Pieces beyond the end, and numbers of values that are not there. */
static void out_of_bounds(void **state) {
    enum { PAGE = 4096 };
    static unsigned char from[3 * PAGE];
    static unsigned char to[8 * PAGE];
    struct segmentpack pack = {
        .form = segmentpack_form(MEMTRACE_SEGMENT_TREE, sizeof(struct memtrace_node))};
    struct varint_writer payload = {0};
    uint32_t sizes[SEGMENTPACK_COLUMNS];
    size_t at = sizeof sizes;
    uint64_t budget = 100 * PAGE;
    (void)state;
    memset(from, 1, sizeof from);
    segmentpack_add(&pack, from, 4, 3);
    assert_int_equal(segmentpack_end(&pack, &payload), 0);
    assert_int_equal(segmentpack_unpack(payload.bytes, payload.size, to, 7 * PAGE, &budget), 0);
    assert_memory_equal(to + 4 * PAGE, from, 3 * PAGE);
    assert_int_equal(budget, 97 * PAGE);
    memset(to, 0, sizeof to);
    budget = 3 * PAGE;
    assert_int_equal(segmentpack_unpack(payload.bytes, payload.size, to, 7 * PAGE, &budget), -1);
    assert_int_equal(budget, 0);
    assert_int_equal(to[4 * PAGE], 0);
    budget = 100 * PAGE;
    assert_int_equal(segmentpack_unpack(payload.bytes, payload.size, to, 6 * PAGE, &budget), -1);
    assert_int_equal(to[6 * PAGE], 0);
    memcpy(sizes, payload.bytes, sizeof sizes);
    at += sizes[0] + sizes[1] + sizes[2]; /* the numbers: there is one value, 0 */
    assert_int_equal(payload.bytes[at], 0);
    payload.bytes[at] = 1;
    assert_int_equal(segmentpack_unpack(payload.bytes, payload.size, to, 7 * PAGE, &budget), -1);
    segmentpack_free(&pack);
    free(payload.bytes);
}

/* Read up to the break, and the break is told; or refused with a line. */
static void cut_off(void **state) {
    struct image image = large_image();
    char path[64];
    struct stat status;
    uint64_t contexts = 0;
    (void)state;
    temporary(path);
    write_compressed(&image, path);
    assert_int_equal(stat(path, &status), 0);
    for (off_t size = status.st_size - 1; size >= 0; size -= 1 + status.st_size / 37) {
        struct error error = {""};
        struct profile *profile;
        assert_int_equal(truncate(path, size), 0);
        profile = profile_open(path, &error);
        if (profile == NULL) {
            assert_true(error.message[0] != '\0');
            continue;
        }
        assert_true(size >= MEMTRACE_HEADER_SIZE);
        assert_non_null(strstr(profile->damage, "cut off at byte "));
        contexts += profile->segment_count;
        profile_close(profile);
    }
    assert_true(contexts > 500); /* what came before the break */
    unlink(path);
    free(image.bytes);
}

static void write_all(const char *path, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void one_block_lost(void **state) {
    struct image image = large_image();
    char path[64];
    size_t size;
    unsigned char *bytes;
    struct profile *profile;
    size_t whole;
    (void)state;
    temporary(path);
    write_compressed(&image, path);
    profile = profile_open(path, NULL);
    whole = profile->segment_count;
    profile_close(profile);
    bytes = read_all(path, &size);
    bytes[MEMTRACE_HEADER_SIZE + 100] ^= 1;
    write_all(path, bytes, size);
    profile = profile_open(path, NULL);
    assert_non_null(profile);
    assert_string_equal(profile->damage, "a block at byte 16384 is damaged");
    assert_uint_in_range(profile->segment_count, whole / 2, whole - 1);
    profile_close(profile);
    unlink(path);
    free(bytes);
    free(image.bytes);
}

static void hit(struct stream *stream, unsigned char *bytes, size_t size) {
    for (uint64_t hits = 1 + stream_below(stream, 5); hits > 0 && size != 0; hits--) {
        bytes[stream_below(stream, size)] = (unsigned char)stream_random(stream);
    }
}

/* Blocks whose checksums are right: no crash, no endless work, and bytes within the profile. */
static void damaged_behind_checksums(void **state) {
    struct image image = random_image(12);
    struct stream stream = stream_start(77, 1, 1);
    char path[64];
    size_t size;
    unsigned char *whole;
    unsigned char *bytes;
    (void)state;
    temporary(path);
    write_compressed(&image, path);
    whole = read_all(path, &size);
    bytes = malloc(size);
    for (int round = 0; round < 400; round++) {
        struct profile *profile;
        struct error error = {""};
        memcpy(bytes, whole, size);
        for (size_t at = MEMTRACE_HEADER_SIZE; at < size;) {
            struct memtrace_block_header block;
            memcpy(&block, bytes + at, sizeof block);
            if (stream_below(&stream, 3) == 0) {
                hit(&stream, bytes + at + sizeof block, block.stored_size);
            }
            if (stream_below(&stream, 9) == 0) {
                block.raw_size = (uint32_t)stream_below(&stream, MEMTRACE_BLOCK_MOST);
                block.raw_size =
                    block.raw_size < block.stored_size ? block.stored_size : block.raw_size;
            }
            block.checksum = block_checksum(&block, bytes + at + sizeof block);
            memcpy(bytes + at, &block, sizeof block);
            at += block_size(&block);
        }
        write_all(path, bytes, size);
        profile = profile_open(path, &error);
        if (profile != NULL) {
            model_free(model_load(profile, &error));
        } else {
            assert_true(error.message[0] != '\0');
        }
        profile_close(profile);
    }
    unlink(path);
    free(bytes);
    free(whole);
    free(image.bytes);
}

/* The header alone decides how much memory is asked for. */
static void says_too_much(void **state) {
    struct image image = random_image(3);
    uint64_t sizes[] = {0, MEMTRACE_HEADER_SIZE - 1, (uint64_t)1 << 40, UINT64_MAX};
    char path[64];
    (void)state;
    temporary(path);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct error error = {""};
        int fd;
        write_compressed(&image, path);
        fd = open(path, O_WRONLY);
        assert_int_equal(pwrite(fd, &sizes[i], 8, offsetof(struct memtrace_header, whole_bytes)),
                         8);
        close(fd);
        assert_null(profile_open(path, &error));
        assert_non_null(strstr(error.message, "has a damaged header"));
    }
    unlink(path);
    free(image.bytes);
}

/* A block may be there often, so that unpacking it would take without end. What lies behind as much
 * as two of the profile is not looked at, and that is told. */
static void asks_for_too_much_work(void **state) {
    struct image image = large_image();
    char path[64];
    struct stat status;
    unsigned char *bytes;
    struct memtrace_block_header block;
    size_t size;
    struct error error = {""};
    struct profile *profile;
    uint64_t before;
    uint64_t broken = 0;
    uint64_t unpacked = 0;
    uint64_t most;
    int fd;
    (void)state;
    temporary(path);
    write_compressed(&image, path);
    assert_int_equal(stat(path, &status), 0);
    bytes = malloc((size_t)status.st_size);
    fd = open(path, O_RDWR | O_APPEND);
    assert_int_equal(pread(fd, bytes, (size_t)status.st_size, 0), status.st_size);
    memcpy(&block, bytes + MEMTRACE_HEADER_SIZE, sizeof block);
    size = block_size(&block);
    before = (uint64_t)status.st_size;
    for (uint64_t at = MEMTRACE_HEADER_SIZE; at < before;) {
        struct memtrace_block_header each;
        memcpy(&each, bytes + at, sizeof each);
        unpacked += each.raw_size;
        at += block_size(&each);
    }
    most = 2 * image.size;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(write(fd, bytes + MEMTRACE_HEADER_SIZE, size), size);
        unpacked += block.raw_size;
        broken = broken == 0 && unpacked > most ? before + (uint64_t)i * size : broken;
    }
    close(fd);
    assert_true(broken != 0);
    profile = profile_open(path, &error);
    assert_non_null(profile);
    assert_non_null(strstr(profile->damage, "a block at byte "));
    assert_int_equal(strtoull(strstr(profile->damage, "byte ") + 5, NULL, 10), broken);
    assert_same(&image, profile);
    profile_close(profile);
    free(bytes);
    unlink(path);
    free(image.bytes);
}

/* What its readers would refuse is not written. */
static void stays_as_it_is(void **state) {
    struct image image = image_new();
    char path[64];
    struct compress_source source = {NULL, -1, (uint64_t)1 << 30};
    int fd;
    (void)state;
    temporary(path);
    source.fd = open(path, O_RDWR);
    assert_int_equal(write(source.fd, image.bytes, MEMTRACE_HEADER_SIZE), MEMTRACE_HEADER_SIZE);
    fd = open("/dev/null", O_WRONLY);
    assert_int_equal(compress_profile(&source, 1, fd), COMPRESS_SMALL);
    close(fd);
    close(source.fd);
    unlink(path);
    free(image.bytes);
}

static void no_room(void **state) {
    struct image image = random_image(12);
    struct compress_source source = {image.bytes, -1, image.size};
    int fd = open("/dev/full", O_WRONLY);
    (void)state;
    assert_int_equal(compress_profile(&source, 1, fd), COMPRESS_FAILED);
    assert_int_equal(errno, ENOSPC);
    close(fd);
    free(image.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),     cmocka_unit_test(from_a_file),
        cmocka_unit_test(is_small),       cmocka_unit_test(cut_off),
        cmocka_unit_test(one_block_lost), cmocka_unit_test(damaged_behind_checksums),
        cmocka_unit_test(says_too_much),  cmocka_unit_test(stays_as_it_is),
        cmocka_unit_test(no_room),        cmocka_unit_test(same_bytes),
        cmocka_unit_test(out_of_bounds),  cmocka_unit_test(asks_for_too_much_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
