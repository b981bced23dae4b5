/* SPDX-License-Identifier: MIT */
/* symbolcache_test.c: names kept on disk are those that would be found anew. */
#include "analyze/read/cachefolder.h"
#include "tests/unit/symbol_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static char cache_file[512];

/* The program c, with a build-id and its cache. */
static int prepare(void **state) {
    char folder[128];
    if (fixture_make(state) != 0 ||
        fixture_run("cc -g -O1 -o whole c.c && cp whole c && objcopy --strip-debug c && "
                    "objcopy --only-keep-debug whole c.debug") != 0) {
        return -1;
    }
    snprintf(folder, sizeof folder, "%s/cache", fixture_folder);
    setenv("MEMTRACE_CACHE", folder, 1);
    uint8_t id[64];
    size_t size = fixture_build_id("c", id);
    int used = snprintf(cache_file, sizeof cache_file, "%s/symbols/", folder);
    for (size_t i = 0; i < size; i++)
        used += snprintf(cache_file + used, sizeof cache_file - (size_t)used, "%02x", id[i]);
    return size >= 2 ? 0 : -1;
}

/* All that a symbolizer says of the first bytes of outer() and main(), as text. */
static void describe(const char *program, bool cached, bool at_once, char *text, size_t size) {
    uint8_t id[64];
    char path[256];
    size_t id_size = fixture_build_id("c", id);
    uint64_t start = fixture_symbol("whole", "outer");
    struct symbolizer_options options = {
        .debug_folders = fixture_folder, .threads = 2, .cached = cached};
    struct symbolizer *symbolizer = symbolizer_open(&options, NULL);
    struct symbol_address addresses[128] = {0};
    size_t count = sizeof addresses / sizeof addresses[0];
    size_t used = 0;
    assert_non_null(symbolizer);
    snprintf(path, sizeof path, "%s/%s", fixture_folder, program);
    struct symbol_module module = {path, id, id_size};
    for (size_t i = 0; i < count; i++)
        addresses[i].offset = start + i;
    if (at_once)
        assert_int_equal(
            symbolizer_prepare(symbolizer, &module, 1, addresses, count, NULL, NULL, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        struct symbol_frames frames;
        assert_int_equal(symbolizer_resolve(symbolizer, &module, addresses[i].offset, &frames), 0);
        fixture_text(&frames, text + used, size - used);
        used += strlen(text + used);
        text[used++] = '\n';
        assert_true(used + 1024 < size);
    }
    text[used] = '\0';
    symbolizer_close(symbolizer);
}

static void expect_same(const char *program, const char *right) {
    static char found[1 << 17];
    for (int round = 0; round < 3; round++) {
        describe(program, true, round % 2 != 0, found, sizeof found);
        assert_string_equal(found, right);
    }
}

static void remembers_what_it_found(void **state) {
    static char right[1 << 17];
    struct stat first, second;
    (void)state;
    unlink(cache_file);
    describe("whole", false, true, right, sizeof right);
    assert_int_equal(access(cache_file, F_OK), -1);
    assert_non_null(strstr(right, "leaf c.c:3 i|middle c.c:8 i|outer c.c:1"));
    expect_same("whole", right);
    /* Nothing new: nothing is written. */
    assert_int_equal(stat(cache_file, &first), 0);
    expect_same("whole", right);
    assert_int_equal(stat(cache_file, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
}

/* What is in the file is what is shown: the test above cannot pass without the cache being used. */
static void answers_from_the_file(void **state) {
    static char right[1 << 17], found[1 << 17];
    (void)state;
    unlink(cache_file);
    describe("whole", true, true, right, sizeof right);
    /* Let the program's debug information go, but not its size and time. */
    struct stat status;
    char path[256];
    snprintf(path, sizeof path, "%s/whole", fixture_folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(fixture_run("cp whole kept && cp c.debug whole && truncate -s %lld whole",
                                 (long long)status.st_size),
                     0);
    struct timespec times[2] = {status.st_mtim, status.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    describe("whole", true, true, found, sizeof found);
    assert_string_equal(found, right);
    assert_int_equal(fixture_run("cp kept whole"), 0);
}

/* A debug file that appears, changes and goes again. */
static void minds_other_files(void **state) {
    static char without[1 << 17], with[1 << 17];
    char id[128];
    (void)state;
    unlink(cache_file);
    snprintf(id, sizeof id, "%s", strrchr(cache_file, '/') + 1);
    describe("c", false, true, without, sizeof without);
    expect_same("c", without);
    assert_int_equal(fixture_run("mkdir -p .build-id/%.2s && cp c.debug .build-id/%.2s/%s.debug",
                                 id, id, id + 2),
                     0);
    describe("c", false, true, with, sizeof with);
    assert_string_not_equal(with, without);
    expect_same("c", with);
    assert_int_equal(fixture_run("touch -d 2001-01-01 .build-id/%.2s/%s.debug", id, id + 2), 0);
    expect_same("c", with);
    assert_int_equal(fixture_run("rm -r .build-id"), 0);
    expect_same("c", without);
}

/* Answers of one command add to those of others. */
static void adds_up(void **state) {
    uint8_t id[64];
    char path[256];
    size_t id_size = fixture_build_id("c", id);
    struct stat status;
    off_t size = 0;
    (void)state;
    unlink(cache_file);
    snprintf(path, sizeof path, "%s/whole", fixture_folder);
    struct symbol_module module = {path, id, id_size};
    for (uint64_t i = 0; i < 3; i++) {
        struct symbolizer_options options = {.cached = true};
        struct symbolizer *symbolizer = symbolizer_open(&options, NULL);
        struct symbol_frames frames;
        assert_int_equal(
            symbolizer_resolve(symbolizer, &module, fixture_symbol("whole", "main") + i, &frames),
            0);
        assert_int_equal(frames.count, 1);
        symbolizer_close(symbolizer);
        assert_int_equal(stat(cache_file, &status), 0);
        assert_true(status.st_size > size);
        size = status.st_size;
    }
}

/* Each byte of the file changed in turn: right answers, whatever it says. */
static void survives_damage(void **state) {
    static char right[1 << 17], found[1 << 17];
    static unsigned char bytes[1 << 18];
    (void)state;
    unlink(cache_file);
    describe("whole", true, true, right, sizeof right);
    FILE *file = fopen(cache_file, "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 1000 && size < sizeof bytes);
    for (size_t at = 0; at < size; at += size / 16) {
        file = fopen(cache_file, "w");
        bytes[at] ^= 1;
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        bytes[at] ^= 1;
        fclose(file);
        describe("whole", true, false, found, sizeof found);
        assert_string_equal(found, right);
    }
}

/* One that is whole, but whose last string does not end in it: as if it were not there, since who
 * reads that string goes on behind the file. */
static void strings_end_in_the_file(void **state) {
    static const struct cachefolder_kind kind = {"symbols", 3, UINT64_C(256) << 20};
    static char right[1 << 17], found[1 << 17];
    static unsigned char bytes[1 << 18];
    struct cachefolder_file file;
    const char *name = strrchr(cache_file, '/') + 1;
    size_t size;
    (void)state;
    unlink(cache_file);
    describe("whole", true, true, right, sizeof right);
    for (int is_ended = 0; is_ended < 2; is_ended++) {
        assert_int_equal(cachefolder_load(&kind, name, &file), 0);
        size = file.size;
        assert_true(size > 1000 && size < sizeof bytes && file.bytes[size - 1] == '\0');
        memcpy(bytes, file.bytes, size);
        cachefolder_unload(&file);
        for (size_t i = size - 1; bytes[i - 1] != '\0'; i--) {
            bytes[i - 1] = 'z'; /* the last string, so that it is seen whether this file was used */
        }
        bytes[size - 1] = is_ended ? '\0' : 'z';
        assert_int_equal(
            cachefolder_store(&kind, name, &(struct cachefolder_piece){bytes, size}, 1), 0);
        describe("whole", true, false, found, sizeof found);
        assert_int_equal(strcmp(found, right) != 0, is_ended);
    }
    unlink(cache_file);
}

/* One whose answers each claim all of its frames: it is added to, which takes no more room than
 * there is. */
static void frames_are_in_one_answer(void **state) {
    enum { HEAD = 144, ANSWER = 16, ANSWERS_AT = 120, FRAMES_AT = 128 };
    static const struct cachefolder_kind kind = {"symbols", 3, UINT64_C(256) << 20};
    static char right[1 << 17], found[1 << 17];
    static unsigned char bytes[1 << 18];
    const char *name = strrchr(cache_file, '/') + 1;
    struct symbolizer_options options = {.debug_folders = fixture_folder, .cached = true};
    struct cachefolder_file file;
    struct symbol_frames frames;
    uint64_t answers, all;
    uint8_t id[64];
    char path[256];
    (void)state;
    unlink(cache_file);
    describe("whole", true, true, right, sizeof right);
    assert_int_equal(cachefolder_load(&kind, name, &file), 0);
    assert_true(file.size > HEAD && file.size < sizeof bytes);
    size_t size = file.size;
    memcpy(bytes, file.bytes, size);
    cachefolder_unload(&file);
    memcpy(&answers, bytes + ANSWERS_AT, sizeof answers);
    memcpy(&all, bytes + FRAMES_AT, sizeof all);
    assert_true(answers > 100 && answers * ANSWER + HEAD < size && all >= answers);
    for (uint64_t i = 0; i < answers; i++) {
        uint32_t claim[2] = {0, (uint32_t)all};
        memcpy(bytes + HEAD + i * ANSWER + 8, claim, sizeof claim);
    }
    assert_int_equal(cachefolder_store(&kind, name, &(struct cachefolder_piece){bytes, size}, 1),
                     0);
    snprintf(path, sizeof path, "%s/whole", fixture_folder);
    struct symbol_module module = {path, id, fixture_build_id("c", id)};
    struct symbolizer *symbolizer = symbolizer_open(&options, NULL);
    uint64_t beyond = fixture_symbol("whole", "outer") + 1000; /* not asked for before */
    assert_int_equal(symbolizer_resolve(symbolizer, &module, beyond, &frames), 0);
    symbolizer_close(symbolizer);
    assert_int_equal(cachefolder_load(&kind, name, &file), 0);
    memcpy(&all, file.bytes + ANSWERS_AT, sizeof all);
    assert_int_equal(all, 2); /* the new one, and one of the others */
    cachefolder_unload(&file);
    unlink(cache_file);
    describe("whole", true, true, found, sizeof found);
    assert_string_equal(found, right);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembers_what_it_found),  cmocka_unit_test(answers_from_the_file),
        cmocka_unit_test(minds_other_files),        cmocka_unit_test(adds_up),
        cmocka_unit_test(survives_damage),          cmocka_unit_test(strings_end_in_the_file),
        cmocka_unit_test(frames_are_in_one_answer),
    };
    return cmocka_run_group_tests(tests, prepare, fixture_remove);
}
