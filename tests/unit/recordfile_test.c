/* SPDX-License-Identifier: MIT */
/* Tests of collect/recordfile.c: what a writer held is given back, whether its file is closed or
 * let go. */
#include "collect/recordfile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void is_given_back(bool closed) {
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER};
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1};
    char path[] = "/tmp/memtrace-unit-XXXXXX";
    struct recordfile file = RECORDFILE_NONE;
    struct error error = {""};
    struct stat status;
    int descriptor;
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    close(mkstemp(path));
    assert_int_equal(recordfile_create(&file, path, RECORDFILE_REPLACE, &header, &error), 0);
    descriptor = file.fd;
    recordfile_reserve(&file, 1 << 20);
    assert_int_equal(recordfile_append(&file, &block, "1234567", 8, &error), 0);
    if (closed) {
        assert_int_equal(recordfile_close(&file, &error), 0);
        assert_int_equal(stat(path, &status), 0);
        assert_true(status.st_blocks * 512 < 1 << 20);
    } else {
        recordfile_release(&file);
    }
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    assert_int_equal(file.fd, -1);
    unlink(path);
}

static void closed_it_holds_nothing(void **state) {
    (void)state;
    is_given_back(true);
}

static void let_go_it_holds_nothing(void **state) {
    (void)state;
    is_given_back(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_it_holds_nothing),
        cmocka_unit_test(let_go_it_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
