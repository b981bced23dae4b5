/* SPDX-License-Identifier: MIT */
/*
 * symbolize_test.c: the filter `memtrace symbolize`, run as a command.
 */
#include "symbol_fixture.h"

static const char memtrace[] = MEMTRACE_BINARY_DIR "/bin/memtrace";
static uint64_t address; /* in outer(), where leaf() and middle() are inlined */
static char output[16384];

static int make(void **state) {
    if (access(memtrace, X_OK) != 0)
        return fixture_make(state);
    if (fixture_make(state) != 0 || fixture_run("gcc -g -O1 c.c -o p && cp p 'a b'") != 0)
        return -1;
    char text[4096], warning[600];
    uint64_t outer = fixture_symbol("p", "outer");
    for (address = outer; address < outer + 128; address++) {
        fixture_resolve("p", NULL, 0, MEMTRACE_BINARY_DIR "/nowhere", address, text, warning);
        if (strncmp(text, "leaf c.c:3 i|middle c.c:7 i|outer c.c:11", 40) == 0)
            return 0;
    }
    return -1;
}

/* Filters text with these options; output gets stdout, then stderr. Returns the status. */
static int filter(const char *options, const char *text) {
    char path[256];
    fixture_write("input", text);
    int status = fixture_run("'%s' symbolize %s <input >output 2>errors; s=$?; "
                             "cat output errors >all; (exit $s)",
                             memtrace, options);
    snprintf(path, sizeof path, "%s/all", fixture_folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    output[fread(output, 1, sizeof output - 1, file)] = '\0';
    fclose(file);
    return status;
}

static void need_command(void) {
    if (access(memtrace, X_OK) != 0)
        skip();
}

static void replaces_a_token(void **state) {
    (void)state;
    char text[512], wanted[1024];
    need_command();
    snprintf(text, sizeof text, "before\n\t%s/p+0x%lx\n  #1 %s/p+0x%lx, x", fixture_folder,
             (unsigned long)address, fixture_folder, (unsigned long)address);
    assert_int_equal(filter("", text), 0);
    snprintf(wanted, sizeof wanted,
             "before\n"
             "\tleaf at %1$s/c.c:3 (inlined)\n\tmiddle at %1$s/c.c:7 (inlined)\n"
             "\touter at %1$s/c.c:11\n"
             "  #1 leaf at %1$s/c.c:3 (inlined)\n     middle at %1$s/c.c:7 (inlined)\n"
             "     outer at %1$s/c.c:11, x",
             fixture_folder);
    assert_string_equal(output, wanted);
}

static void leaves_the_rest_alone(void **state) {
    (void)state;
    static const char text[] = "a+0x b+0xzz +0x12 do_sys_open+0x1f/0x40 [vdso]+0x123 word+0x12\n"
                               "x+0x1_y 0x12 +0\n\n\xff+0x3\xfe\n";
    need_command();
    assert_int_equal(filter("", text), 0);
    assert_string_equal(output, text);
}

#define ABSENT MEMTRACE_BINARY_DIR "/no/such.so"

static void warns_of_a_missing_module_once(void **state) {
    (void)state;
    need_command();
    assert_int_equal(filter("", ABSENT "+0x12\n" ABSENT "+0x13\n"), 0);
    assert_string_equal(output, ABSENT "+0x12\n" ABSENT "+0x13\n"
                                       "memtrace: " ABSENT ": No such file or directory: "
                                       "no names from it\n");
}

static void takes_paths_with_blanks_and_roots(void **state) {
    (void)state;
    char text[512], options[256];
    need_command();
    snprintf(text, sizeof text, "at %s/a b+0x%lx\n", fixture_folder, (unsigned long)address);
    assert_int_equal(filter("", text), 0);
    assert_memory_equal(output, "at leaf at ", 11);
    snprintf(text, sizeof text, "/p+0x%lx\n", (unsigned long)address);
    snprintf(options, sizeof options, "--root %s", fixture_folder);
    assert_int_equal(filter(options, text), 0);
    assert_memory_equal(output, "leaf at ", 8);
}

static void says_what_is_wrong(void **state) {
    (void)state;
    need_command();
    assert_int_equal(WEXITSTATUS(filter(ABSENT, "")), 1);
    assert_string_equal(output, "memtrace: " ABSENT ": No such file or directory\n");
    assert_int_equal(WEXITSTATUS(filter("--wrong", "")), 2);
    assert_int_equal(WEXITSTATUS(filter("a b", "")), 2);
    assert_int_equal(filter("--help", ""), 0);
    assert_memory_equal(output, "usage: memtrace symbolize", 25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_a_token),
        cmocka_unit_test(leaves_the_rest_alone),
        cmocka_unit_test(warns_of_a_missing_module_once),
        cmocka_unit_test(takes_paths_with_blanks_and_roots),
        cmocka_unit_test(says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, make, fixture_remove);
}
