/* SPDX-License-Identifier: MIT */
/* Tests of collect/recordsample.c: what is written of a process's mappings is all of them, whenever
 * the process ends; and samples are written at their times. */
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

#define MS UINT64_C(1000000)

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

/* Ten a second, written when the first has waited for five seconds, and at the end. */
static void samples_come_at_their_times(void **state) {
    static const struct {
        uint32_t items;
        uint64_t first_ms, last_ms;
    } wanted[] = {{51, 0, 5000}, {3, 5100, 5250}};
    struct memtrace_recording_header header = {0};
    struct recordfile file = RECORDFILE_NONE;
    struct recordsample sample;
    struct error error;
    char path[] = "/tmp/memtrace-unit-XXXXXX";
    size_t count = 0;
    (void)state;
    close(mkstemp(path));
    assert_int_equal(recordfile_create(&file, path, RECORDFILE_REPLACE, &header, &error), 0);
    recordsample_open(&sample, getpid());
    for (uint64_t ms = 0; ms <= 5250; ms += 50) {
        assert_int_equal(recordsample_tick(&sample, &file, ms * MS, 0, ms == 5250, &error), 0);
    }
    recordsample_close(&sample);
    for (size_t i = 0; i < file.index_count; i++) {
        const struct memtrace_block_header *block = &file.index[i].block;
        if (block->kind == MEMTRACE_BLOCK_SAMPLES) {
            assert_true(count < sizeof wanted / sizeof wanted[0]);
            assert_int_equal(block->items, wanted[count].items);
            assert_int_equal(block->first_ns, wanted[count].first_ms * MS);
            assert_int_equal(block->last_ns, wanted[count].last_ms * MS);
            count++;
        }
    }
    assert_int_equal(count, sizeof wanted / sizeof wanted[0]);
    assert_int_equal(recordfile_close(&file, &error), 0);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_is_whole_or_none),
        cmocka_unit_test(samples_come_at_their_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
