/* SPDX-License-Identifier: MIT */
/* Reading what /proc tells of a process: each kind of line, and what no kernel writes. */
#include "analyze/read/procfile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct procmaps maps_of(char *text) {
    struct procmaps maps = {.file = fmemopen(text, strlen(text), "r")};
    assert_non_null(maps.file);
    return maps;
}

static void test_lines(void **state) {
    char text[] = "400000-401000 r-xp 00002000 fd:01 7     /bin/a b\n"
                  "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
                  "7f0000001000-7f0000002000 rw-s 00000000 00:01 123 /memfd:x (deleted)\n"
                  "7f0000002000-7f0000003000 ---p 00000000 08:01 18446744073709551615 /a\\012b\n"
                  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]";
    struct procmaps maps = maps_of(text);
    struct procmapping mapping;
    (void)state;
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_true(mapping.start == 0x400000 && mapping.end == 0x401000 && mapping.offset == 0x2000);
    assert_true(mapping.inode == 7 && mapping.readable && !mapping.writable && mapping.executable);
    assert_string_equal(mapping.path, "/bin/a b");
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_true(mapping.inode == 0 && mapping.writable && !mapping.executable);
    assert_string_equal(mapping.path, "");
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_string_equal(mapping.path, "/memfd:x (deleted)");
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_true(mapping.inode == UINT64_MAX && !mapping.readable);
    assert_string_equal(mapping.path, "/a\\012b");
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_string_equal(mapping.path, "[vsyscall]");
    assert_int_equal(procmaps_next(&maps, &mapping), 0);
    procmaps_close(&maps);
}

static void test_no_lines(void **state) {
    char text[] = "\n"
                  "401000-400000 r-xp 00000000 fd:01 7 /backwards\n"
                  "400000-400000 r-xp 00000000 fd:01 7 /empty\n"
                  "400000-401000 r-xp 00000000 fd:01\n"
                  "400000-401000 r-xp 00000000 fd:01 7\n";
    struct procmaps maps = maps_of(text);
    struct procmapping mapping;
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(procmaps_next(&maps, &mapping), -1);
    }
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_string_equal(mapping.path, "");
    assert_int_equal(procmaps_next(&maps, &mapping), 0);
    procmaps_close(&maps);
}

/* A path longer than any that open() takes, which the kernel shows of folders that were moved. */
static void test_long_path(void **state) {
    enum { LENGTH = 20000 };
    static const char begin[] = "400000-401000 r-xp 00000000 fd:01 7 /";
    char *text = calloc(1, sizeof begin + LENGTH);
    struct procmaps maps;
    struct procmapping mapping;
    (void)state;
    assert_non_null(text);
    memcpy(text, begin, sizeof begin);
    memset(text + sizeof begin - 1, 'x', LENGTH);
    maps = maps_of(text);
    assert_int_equal(procmaps_next(&maps, &mapping), 1);
    assert_int_equal(strlen(mapping.path), LENGTH + 1);
    procmaps_close(&maps);
    free(text);
}

/* The kernel's own: a file with a newline in its name, which is gone by now. */
static void test_own(void **state) {
    char path[] = "/tmp/a\nb-XXXXXX";
    struct procmaps maps;
    struct procmapping mapping;
    char text[PROCFILE_STAT_BYTES];
    char value[64];
    bool is_found = false;
    int fd = mkstemp(path);
    void *bytes;
    (void)state;
    assert_int_not_equal(fd, -1);
    bytes = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    unlink(path);
    assert_int_equal(procmaps_open(&maps, getpid()), 0);
    while (procmaps_next(&maps, &mapping) > 0) {
        if (mapping.start == (uintptr_t)bytes) {
            is_found = true;
            assert_memory_equal(mapping.path, "/tmp/a\\012b-", 12);
            assert_string_equal(strchr(mapping.path, ' '), " (deleted)");
        }
    }
    assert_true(is_found);
    procmaps_close(&maps);
    munmap(bytes, 1);
    close(fd);
    assert_int_equal(*procfile_stat(getpid(), 0, 3, text), 'R');
    assert_int_equal(atoi(procfile_stat(getpid(), getpid(), 4, text)), getppid());
    assert_null(procfile_stat(getpid(), 0, 400, text));
    assert_int_equal(procfile_status(getpid(), 0, "PPid", value, sizeof value), 0);
    assert_int_equal(atoi(value), getppid());
    assert_int_equal(procfile_status(getpid(), 0, "PPi", value, sizeof value), -1);
    assert_int_equal(procfile_own_number(getpid(), getpid()), getpid());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_no_lines),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
