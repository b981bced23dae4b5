/* SPDX-License-Identifier: MIT */
/* packedin_test.c: lines out of plain, gzip'd and zstd files, whole, in pieces, cut off, damaged.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/export/packedout.h"
#include "analyze/read/packedin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file under test lies in memory. */
static int file;
static char path[64];

static void write_file(const void *bytes, size_t size) {
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, bytes, size, 0), (ssize_t)size);
}

/* The text as a packed file: also a check of packedout. */
static char *packed(enum packing packing, const char *text, size_t *size) {
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size);
    struct packedout *in = packedout_open(out, packing);
    assert_int_equal(fwrite(text, 1, strlen(text), in->stream), strlen(text));
    assert_int_equal(packedout_close(in), 0);
    fclose(out);
    return bytes;
}

/* What comes out, each line ended by '|'. */
static char *all_lines(const char **trouble) {
    struct packedin *in = packedin_open(path, NULL);
    char *text = NULL;
    size_t text_size;
    FILE *out = open_memstream(&text, &text_size);
    char *line;
    size_t size;
    assert_non_null(in);
    while ((line = packedin_line(in, &size)) != NULL) {
        assert_int_equal(line[size], '\0');
        fwrite(line, 1, size, out);
        fputc('|', out);
    }
    assert_null(packedin_line(in, &size)); /* and no more */
    *trouble = packedin_break(in);
    assert_int_equal(packedin_done(in), packedin_size(in));
    packedin_close(in);
    fclose(out);
    return text;
}

static void expect(const char *lines, const char *broken) {
    const char *trouble;
    char *text = all_lines(&trouble);
    assert_string_equal(text, lines);
    if (broken == NULL) {
        assert_null(trouble);
    } else {
        assert_non_null(trouble);
        assert_string_equal(trouble, broken);
    }
    free(text);
}

static void test_plain(void **state) {
    (void)state;
    write_file("one\n\ntwo\n", 9);
    expect("one||two|", NULL);
    write_file("", 0);
    expect("", NULL);
    write_file("one\ntw", 6);
    expect("one|", "it is cut off");
}

static void test_packed(void **state) {
    (void)state;
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        size_t size;
        char *bytes = packed(packing, "one\ntwo\n", &size);
        char *twice = malloc(2 * size);
        write_file(bytes, size);
        expect("one|two|", NULL);
        memcpy(twice, bytes, size);
        memcpy(twice + size, bytes, size);
        write_file(twice, 2 * size); /* as cat joins them */
        expect("one|two|one|two|", NULL);
        free(bytes);
        free(twice);
    }
}

/* Lines that are longer than what is read at a time, and many of them. */
static void test_long(void **state) {
    enum { LINES = 5, LENGTH = 700000 };
    char *text = malloc(LINES * (LENGTH + 1) + 1);
    char *expected = malloc(LINES * (LENGTH + 1) + 1);
    (void)state;
    for (int i = 0; i < LINES; i++) {
        memset(text + i * (LENGTH + 1), 'a' + i, LENGTH);
        text[(i + 1) * (LENGTH + 1) - 1] = '\n';
    }
    text[LINES * (LENGTH + 1)] = '\0';
    strcpy(expected, text);
    for (char *at = strchr(expected, '\n'); at != NULL; at = strchr(at, '\n')) {
        *at = '|';
    }
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        size_t size;
        char *bytes = packed(packing, text, &size);
        write_file(bytes, size);
        expect(expected, NULL);
        free(bytes);
    }
    free(text);
    free(expected);
}

/* Cut anywhere a file gives whole lines from its beginning, and says that it is cut. */
static void test_cut(void **state) {
    static const char text[] = "first\nsecond\nthird\nfourth\n";
    static const char lines[] = "first|second|third|fourth|";
    (void)state;
    for (enum packing packing = PACKING_GZIP; packing <= PACKING_ZSTD; packing++) {
        size_t size;
        char *bytes = packed(packing, text, &size);
        for (size_t cut = 4; cut < size; cut++) {
            const char *trouble;
            char *got;
            write_file(bytes, cut);
            got = all_lines(&trouble);
            assert_int_equal(strncmp(got, lines, strlen(got)), 0);
            assert_non_null(trouble);
            free(got);
        }
        free(bytes);
    }
}

static void test_damaged(void **state) {
    size_t size;
    char *bytes = packed(PACKING_GZIP, "first\nsecond\n", &size);
    (void)state;
    bytes[10] = (char)0xff; /* no kind of block that there is */
    write_file(bytes, size);
    expect("", "it is damaged");
    free(bytes);
    assert_null(packedin_open(MEMTRACE_BINARY_DIR "/nowhere/at/all", NULL));
    assert_null(packedin_open("/", NULL));
}

static int make_file(void **state) {
    (void)state;
    file = memfd_create("packedin_test", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file >= 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_packed),  cmocka_unit_test(test_long),
        cmocka_unit_test(test_cut),   cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, make_file, NULL);
}
