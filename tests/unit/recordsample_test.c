/* SPDX-License-Identifier: MIT */
/* Tests of collect/recordsample.c: what is written of a process's mappings is all of them, whenever
 * the process ends. */
#define _GNU_SOURCE
#include "collect/recordsample.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAPPINGS = 3000, ROUNDS = 40, PAGE = 4096 };

/* A process with many mappings. Returns when they are there. */
static pid_t start(void) {
    char byte = 0;
    int ready[2];
    pid_t pid;
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        char *all =
            mmap(NULL, 2 * MAPPINGS * (size_t)PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; all != MAP_FAILED && i < MAPPINGS; i++) { /* no two that could be one */
            mprotect(all + 2 * i * PAGE, PAGE, PROT_NONE);
        }
        if (write(ready[1], "", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void kill_after(pid_t pid, useconds_t delay_us) {
    pid_t killer = fork();
    if (killer == 0) {
        usleep(delay_us);
        kill(pid, SIGKILL);
        _exit(0);
    }
}

/* A look at its mappings now. How many were written; 0: none. */
static uint32_t look(pid_t pid, const char *path) {
    struct memtrace_recording_header header = {0};
    struct recordfile file = RECORDFILE_NONE;
    struct recordsample sample;
    struct error error;
    uint32_t count = 0;
    assert_int_equal(recordfile_create(&file, path, RECORDFILE_REPLACE, &header, &error), 0);
    recordsample_open(&sample, pid);
    assert_int_equal(recordsample_tick(&sample, &file, UINT64_C(2000000000), 0, false, &error), 0);
    recordsample_close(&sample);
    for (size_t i = 0; i < file.index_count; i++) {
        count += file.index[i].block.kind == MEMTRACE_BLOCK_SMAPS ? file.index[i].block.items : 0;
    }
    assert_int_equal(recordfile_close(&file, &error), 0);
    unlink(path);
    return count;
}

static void a_look_is_whole_or_none(void **state) {
    char path[] = "/tmp/memtrace-unit-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (useconds_t round = 1; round <= ROUNDS; round++) {
        pid_t pid = start();
        uint32_t whole = look(pid, path);
        uint32_t count;
        assert_uint_in_range(whole, 2 * MAPPINGS, 3 * MAPPINGS);
        kill_after(pid, round * 500);
        count = look(pid, path);
        if (count != 0) {
            assert_int_equal(count, whole);
        }
        while (wait(NULL) > 0) {
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_is_whole_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
