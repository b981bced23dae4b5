/* SPDX-License-Identifier: MIT */
/*
 * debugfile_test.c: where debug information is found, and when it must not be used.
 *
 * Each case moves one program's debug information elsewhere and expects the frames that the
 * unstripped program gave.
 */
#include "symbol_fixture.h"

#include "analyze/symbol/debugfile.h"

static const char nowhere[] = MEMTRACE_BINARY_DIR "/nowhere";
static uint64_t address; /* of the first call to malloc, inlined twice */
static char expected[4096];
static uint8_t id[64];
static size_t id_size;

/* The program "full", and the first address in outer() with two inlined frames. */
static int make(void **state) {
    if (fixture_make(state) != 0 || fixture_run("gcc -g -O1 -Wl,--build-id c.c -o full") != 0)
        return -1;
    uint64_t outer = fixture_symbol("full", "outer");
    char warning[600];
    for (address = outer; address < outer + 128; address++) {
        fixture_resolve("full", NULL, 0, nowhere, address, expected, warning);
        if (strncmp(expected, "leaf c.c:3 i|middle c.c:7 i|outer c.c:11", 40) == 0)
            break;
    }
    id_size = fixture_build_id("full", id);
    return address < outer + 128 && id_size == 20 &&
                   fixture_run("objcopy --only-keep-debug full full.debug &&"
                               "objcopy --strip-debug --add-gnu-debuglink=full.debug full part &&"
                               "objcopy --strip-all full bare && mkdir -p .debug root/.build-id &&"
                               "mv full.debug kept && mv full other") == 0
               ? 0
               : -1;
}

static void expect_full(const char *program, const char *folders) {
    char text[4096], warning[600];
    fixture_resolve(program, id, id_size, folders, address, text, warning);
    assert_string_equal(text, expected);
    assert_string_equal(warning, "");
}

static void expect(const char *program, const char *folders, const char *text_wanted) {
    char text[4096], warning[600];
    fixture_resolve(program, id, id_size, folders, address, text, warning);
    assert_string_equal(text, text_wanted);
}

static void finds_the_link_beside_the_file(void **state) {
    (void)state;
    expect("part", nowhere, "outer ?:0");
    assert_int_equal(fixture_run("cp kept full.debug"), 0);
    expect_full("part", nowhere);
    assert_int_equal(fixture_run("mv full.debug .debug/full.debug"), 0);
    expect_full("part", nowhere);
    assert_int_equal(fixture_run("rm .debug/full.debug"), 0);
}

static void finds_the_link_below_the_debug_folder(void **state) {
    (void)state;
    char folders[256];
    snprintf(folders, sizeof folders, "%s:%s/root", nowhere, fixture_folder);
    assert_int_equal(fixture_run("mkdir -p root$PWD && cp kept root$PWD/full.debug"), 0);
    expect_full("part", folders);
    assert_int_equal(fixture_run("mv root$PWD/full.debug root$PWD/bare.debug"), 0);
    expect_full("bare", folders);
    assert_int_equal(fixture_run("mv root$PWD/bare.debug root$PWD/bare"), 0);
    expect_full("bare", folders);
    assert_int_equal(fixture_run("rm -r root$PWD"), 0);
    expect("bare", folders, "");
}

static void add_by_build_id(void) {
    char hexadecimal[130];
    for (size_t i = 0; i < id_size; i++)
        snprintf(hexadecimal + 2 * i, 3, "%02x", id[i]);
    assert_int_equal(
        fixture_run("mkdir -p root/.build-id/%.2s && cp kept root/.build-id/%.2s/%s.debug",
                    hexadecimal, hexadecimal, hexadecimal + 2),
        0);
}

/* A program that was copied here from elsewhere: below the root, or in one of the folders. */
static void locates_what_lies_elsewhere(void **state) {
    char found[PATH_MAX], copies[512], wanted[512];
    (void)state;
    assert_true(debugfile_locate("/nowhere/bin/moved", found));
    assert_string_equal(found, "/nowhere/bin/moved");
    assert_int_equal(fixture_run("mkdir -p root/nowhere/bin copies && cp other copies/moved"), 0);
    snprintf(copies, sizeof copies, "%s:%s/copies", nowhere, fixture_folder);
    debugfile_set_copies(copies);
    snprintf(wanted, sizeof wanted, "%s/copies/moved", fixture_folder);
    assert_true(debugfile_locate("/nowhere/bin/moved", found));
    assert_string_equal(found, wanted);
    assert_int_equal(fixture_run("mv copies/moved root/nowhere/bin/moved"), 0);
    assert_true(debugfile_locate("/nowhere/bin/moved", found));
    assert_string_equal(found, "/nowhere/bin/moved");
    snprintf(copies, sizeof copies, "%s/root", fixture_folder);
    debugfile_set_root(copies);
    snprintf(wanted, sizeof wanted, "%s/root/nowhere/bin/moved", fixture_folder);
    assert_true(debugfile_locate("/nowhere/bin/moved", found));
    assert_string_equal(found, wanted);
    debugfile_set_root("");
    debugfile_set_copies(NULL);
    assert_int_equal(fixture_run("rm -r root/nowhere copies"), 0);
}

static void finds_by_build_id(void **state) {
    (void)state;
    char folders[256];
    snprintf(folders, sizeof folders, "%s/root", fixture_folder);
    add_by_build_id();
    expect_full("bare", folders);
    expect_full("part", folders);
    /* The program is gone or replaced, but the debug file of its build is still there. */
    expect_full("gone", folders);
    assert_int_equal(fixture_run("gcc -g -O2 -Wl,--build-id c.c -o replaced"), 0);
    expect_full("replaced", folders);
    assert_int_equal(fixture_run("rm -r root/.build-id"), 0);
}

/* Not even a table of sections is left (ELF header: e_shoff, e_shnum and e_shstrndx): then a
 * segment tells the build-id. */
static void reads_the_build_id_without_sections(void **state) {
    (void)state;
    char folders[256], text[4096], warning[600];
    snprintf(folders, sizeof folders, "%s/root", fixture_folder);
    add_by_build_id();
    assert_int_equal(
        fixture_run("cp bare least &&"
                    "dd if=/dev/zero of=least bs=1 seek=40 count=8 conv=notrunc 2>&1 &&"
                    "dd if=/dev/zero of=least bs=1 seek=60 count=4 conv=notrunc 2>&1"),
        0);
    fixture_resolve("least", NULL, 0, folders, address, text, warning);
    assert_string_equal(text, expected);
    assert_int_equal(fixture_run("rm -r least root/.build-id"), 0);
}

/* As a recording carries it of a library without debug information. */
static void is_content_with_symbols_alone(void **state) {
    (void)state;
    char folders[256], text[4096], warning[600];
    snprintf(folders, sizeof folders, "%s/root", fixture_folder);
    assert_int_equal(fixture_run("cp kept whole.debug && objcopy --strip-debug kept"), 0);
    add_by_build_id();
    assert_int_equal(fixture_run("mv whole.debug kept"), 0);
    fixture_resolve("gone", id, id_size, folders, address, text, warning);
    assert_string_equal(text, "outer ?:0");
    assert_string_equal(warning, "");
    assert_int_equal(fixture_run("rm -r root/.build-id"), 0);
}

static void ignores_a_debug_file_of_another_build(void **state) {
    (void)state;
    assert_int_equal(fixture_run("gcc -g -O2 -Wl,--build-id c.c -o x && "
                                 "objcopy --only-keep-debug x full.debug"),
                     0);
    expect("part", nowhere, "outer ?:0");
    assert_int_equal(fixture_run("rm full.debug"), 0);
}

static void checks_the_checksum_without_build_id(void **state) {
    (void)state;
    char text[4096], warning[600];
    assert_int_equal(fixture_run("gcc -g -O1 -Wl,--build-id=none c.c -o n && "
                                 "objcopy --only-keep-debug n n.debug && "
                                 "objcopy --strip-debug --add-gnu-debuglink=n.debug n m"),
                     0);
    uint64_t outer = fixture_symbol("n", "outer");
    fixture_resolve("m", NULL, 0, nowhere, outer, text, warning);
    assert_string_equal(text, "outer c.c:10");
    assert_int_equal(fixture_run("printf x >>n.debug"), 0);
    fixture_resolve("m", NULL, 0, nowhere, outer, text, warning);
    assert_string_equal(text, "outer ?:0");
}

static void warns_of_a_changed_module(void **state) {
    (void)state;
    char text[4096], warning[600];
    assert_int_equal(fixture_run("gcc -g -O2 -Wl,--build-id c.c -o changed"), 0);
    fixture_resolve("changed", id, id_size, nowhere, address, text, warning);
    assert_string_equal(text, "");
    assert_non_null(strstr(warning, "/changed has changed since the profile was taken"));
    assert_int_equal(fixture_run("gcc -g -O1 -Wl,--build-id=none c.c -o changed"), 0);
    fixture_resolve("changed", id, id_size, nowhere, address, text, warning);
    assert_string_equal(text, "");
    assert_non_null(strstr(warning, "has changed"));
}

static void warns_of_a_module_that_is_gone(void **state) {
    (void)state;
    char text[4096], warning[600];
    fixture_resolve("gone", id, id_size, nowhere, address, text, warning);
    assert_string_equal(text, "");
    assert_non_null(strstr(warning, "/gone: No such file or directory"));
    fixture_resolve("c.c", NULL, 0, nowhere, address, text, warning);
    assert_string_equal(text, "");
    assert_non_null(strstr(warning, "not an ELF file"));
    fixture_resolve(fixture_folder, NULL, 0, nowhere, address, text, warning);
    assert_string_equal(text, "");
}

static void reads_embedded_symbols(void **state) {
    (void)state;
    if (fixture_run("command -v xz") != 0)
        skip();
    /* Keep .symtab alone, packed, in a stripped program: Fedora's recipe. */
    assert_int_equal(
        fixture_run("objcopy -S --keep-symbol=outer other mini && xz -f mini && "
                    "objcopy --strip-all --add-section .gnu_debugdata=mini.xz other e"),
        0);
    expect("e", nowhere, "outer ?:0");
    expect("bare", nowhere, "");
}

static void reads_the_shared_file_of_dwz(void **state) {
    (void)state;
    if (fixture_run("command -v dwz") != 0)
        skip();
    assert_int_equal(fixture_run("gcc -g -O1 -gdwarf-4 -Wl,--build-id c.c -o z1 && cp z1 z0 && "
                                 "gcc -g -O1 -gdwarf-4 -Wl,--build-id c.c -DOTHER -o z2 && "
                                 "dwz -m common z1 z2"),
                     0);
    char text[4096], plain[4096], warning[600];
    uint64_t outer = fixture_symbol("z1", "outer");
    for (uint64_t at = outer; at < outer + 32; at++) {
        fixture_resolve("z0", NULL, 0, nowhere, at, plain, warning);
        fixture_resolve("z1", NULL, 0, nowhere, at, text, warning);
        assert_string_equal(text, plain);
        assert_string_equal(warning, "");
    }
    assert_int_equal(fixture_run("rm common"), 0);
    fixture_resolve("z1", NULL, 0, nowhere, outer, text, warning);
    assert_non_null(strstr(warning, "common, which is missing"));
}

static void survives_damage(void **state) {
    (void)state;
    char text[4096], warning[600];
    for (int i = 1; i < 60; i++) {
        assert_int_equal(fixture_run("head -c %d other > cut", i * 300), 0);
        fixture_resolve("cut", NULL, 0, nowhere, address, text, warning);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_link_beside_the_file),
        cmocka_unit_test(finds_the_link_below_the_debug_folder),
        cmocka_unit_test(locates_what_lies_elsewhere),
        cmocka_unit_test(finds_by_build_id),
        cmocka_unit_test(reads_the_build_id_without_sections),
        cmocka_unit_test(is_content_with_symbols_alone),
        cmocka_unit_test(ignores_a_debug_file_of_another_build),
        cmocka_unit_test(checks_the_checksum_without_build_id),
        cmocka_unit_test(warns_of_a_changed_module),
        cmocka_unit_test(warns_of_a_module_that_is_gone),
        cmocka_unit_test(reads_embedded_symbols),
        cmocka_unit_test(reads_the_shared_file_of_dwz),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, make, fixture_remove);
}
