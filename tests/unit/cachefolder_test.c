/* SPDX-License-Identifier: MIT */
/* cachefolder_test.c: files kept from one command to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/read/cachefolder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];
static const struct cachefolder_kind kind = {"things", 3, 1000};

static int make(void **state) {
    (void)state;
    strcpy(root, "/tmp/cachefolder_test.XXXXXX");
    return mkdtemp(root) != NULL && setenv("MEMTRACE_CACHE", root, 1) == 0 ? 0 : -1;
}

static int clean(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/things/%s", root, name);
    return path;
}

static int store(const char *name, const char *text) {
    struct cachefolder_piece piece = {text, strlen(text)};
    return cachefolder_store(&kind, name, &piece, 1);
}

static void expect(const char *name, const char *text) {
    struct cachefolder_file file;
    if (text == NULL) {
        assert_int_equal(cachefolder_load(&kind, name, &file), -1);
        assert_null(file.bytes);
        return;
    }
    assert_int_equal(cachefolder_load(&kind, name, &file), 0);
    assert_int_equal(file.size, strlen(text));
    assert_memory_equal(file.bytes, text, file.size);
    cachefolder_unload(&file);
    assert_null(file.mapping);
}

static void keeps_and_replaces(void **state) {
    struct cachefolder_piece pieces[] = {{"ab", 2}, {NULL, 0}, {"cde", 3}};
    struct stat status;
    (void)state;
    expect("a", NULL);
    assert_int_equal(store("a", "first"), 0);
    expect("a", "first");
    assert_int_equal(store("b", "other"), 0);
    assert_int_equal(cachefolder_store(&kind, "a", pieces, 3), 0);
    expect("a", "abcde");
    expect("b", "other");
    assert_int_equal(stat(path_of("a"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(path_of(""), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

/* Each byte of a file matters. */
static void believes_no_damaged_file(void **state) {
    char bytes[256];
    FILE *file;
    size_t size;
    (void)state;
    assert_int_equal(store("a", "payload"), 0);
    file = fopen(path_of("a"), "r");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(size, 64 + strlen("payload"));
    for (size_t i = 0; i <= size; i++) {
        char changed[sizeof bytes];
        memcpy(changed, bytes, size);
        changed[i < size ? i : 0] ^= 0x10;
        file = fopen(path_of("a"), "w");
        assert_int_equal(fwrite(changed, 1, size, file), size);
        fclose(file);
        expect("a", NULL);
        file = fopen(path_of("a"), "w"); /* cut off */
        assert_int_equal(fwrite(bytes, 1, i < size ? i : size - 1, file), i < size ? i : size - 1);
        fclose(file);
        expect("a", NULL);
    }
    assert_int_equal(store("a", "again"), 0);
    expect("a", "again");
}

static void minds_version_and_switch(void **state) {
    struct cachefolder_kind newer = {"things", 4, 1000};
    struct cachefolder_file file;
    (void)state;
    assert_int_equal(store("a", "old"), 0);
    assert_int_equal(cachefolder_load(&newer, "a", &file), -1);
    assert_true(cachefolder_is_on());
    setenv("MEMTRACE_CACHE", "", 1);
    assert_false(cachefolder_is_on());
    expect("a", NULL);
    assert_int_equal(store("a", "off"), -1);
    setenv("MEMTRACE_CACHE", root, 1);
    expect("a", "old");
}

static void finds_its_folder(void **state) {
    char folder[128];
    struct stat status;
    (void)state;
    unsetenv("MEMTRACE_CACHE");
    snprintf(folder, sizeof folder, "%s/x", root);
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(store("a", "x"), 0);
    snprintf(folder, sizeof folder, "%s/x/memtrace/things/a", root);
    assert_int_equal(stat(folder, &status), 0);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    setenv("HOME", root, 1);
    assert_int_equal(store("a", "h"), 0);
    snprintf(folder, sizeof folder, "%s/.cache/memtrace/things/a", root);
    assert_int_equal(stat(folder, &status), 0);
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    assert_false(cachefolder_is_on());
    setenv("MEMTRACE_CACHE", root, 1);
}

/* Somebody else could have put there what we would show. */
static void shuns_open_folders(void **state) {
    (void)state;
    assert_int_equal(store("a", "mine"), 0);
    assert_int_equal(chmod(path_of(""), 0777), 0);
    expect("a", NULL);
    assert_int_equal(store("a", "more"), -1);
    assert_int_equal(chmod(path_of(""), 0700), 0);
    expect("a", "mine");
}

static void set_time(const char *name, time_t when) {
    struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static void drops_what_was_not_used(void **state) {
    char text[301];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(store("one", text), 0);
    assert_int_equal(store("two", text), 0);
    set_time("one", 100);
    set_time("two", 200);
    expect("one", text); /* now it is the one used last */
    assert_int_equal(store("three", text), 0);
    expect("two", NULL);
    expect("one", text);
    expect("three", text);
    FILE *left = fopen(path_of("a.new-1-2"), "w");
    fclose(left);
    set_time("a.new-1-2", 100);
    assert_int_equal(store("four", "4"), 0);
    assert_int_equal(access(path_of("a.new-1-2"), F_OK), -1);
    expect("four", "4");
}

static void refuses_what_is_too_large(void **state) {
    char text[1001];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(store("large", text), -1);
    expect("large", NULL);
}

/* Many writers and readers: each reader sees one of the files as a whole, or none. */
static void serves_several_processes(void **state) {
    enum { WRITERS = 4, ROUNDS = 50 };
    pid_t pids[WRITERS];
    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char text[2] = {(char)('a' + i), '\0'};
            int bad = 0;
            for (int round = 0; round < ROUNDS; round++) {
                struct cachefolder_file file;
                bad += store("shared", text) != 0;
                bad += cachefolder_load(&kind, "shared", &file) != 0 || file.size != 1 ||
                       file.bytes[0] < 'a' || file.bytes[0] >= 'a' + WRITERS;
                cachefolder_unload(&file);
            }
            _exit(bad != 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_and_replaces, make, clean),
        cmocka_unit_test_setup_teardown(believes_no_damaged_file, make, clean),
        cmocka_unit_test_setup_teardown(minds_version_and_switch, make, clean),
        cmocka_unit_test_setup_teardown(finds_its_folder, make, clean),
        cmocka_unit_test_setup_teardown(shuns_open_folders, make, clean),
        cmocka_unit_test_setup_teardown(drops_what_was_not_used, make, clean),
        cmocka_unit_test_setup_teardown(refuses_what_is_too_large, make, clean),
        cmocka_unit_test_setup_teardown(serves_several_processes, make, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
