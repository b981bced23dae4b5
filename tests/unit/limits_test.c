/* SPDX-License-Identifier: MIT */
/* limits_test.c: collect/limits over made-up /proc and /sys, and the log of collect/periodic. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "collect/limits.h"
#include "collect/periodic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PID = 77 };

static char root[64];

/* Writes a file below the root, with its folders. */
static void put(const char *path, const char *text) {
    char full[512];
    FILE *file;
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_status(unsigned resident_mb, unsigned swap_mb) {
    char text[200];
    snprintf(text, sizeof text, "Name:\tVmRSS: 9\nVmSize:\t%u kB\nVmRSS:\t%u kB\nVmSwap:\t%u kB\n",
             4 * resident_mb * 1024, resident_mb * 1024, swap_mb * 1024);
    put("/proc/77/status", text);
}

static void put_machine(unsigned available_mb) {
    char text[200];
    snprintf(text, sizeof text, "MemTotal: %u kB\nMemFree: 1 kB\nMemAvailable: %u kB\n",
             1000 * 1024, available_mb * 1024);
    put("/proc/meminfo", text);
}

static void put_number(const char *path, unsigned long megabytes) {
    char text[40];
    snprintf(text, sizeof text, "%lu\n", megabytes << 20);
    put(path, text);
}

static int start(void **state) {
    (void)state;
    strcpy(root, "/tmp/memtrace-limits-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int end(void **state) {
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static struct limits limits_of(uint64_t bytes, uint32_t percent) {
    struct memtrace_limit limit = {.bytes = bytes, .percent = percent};
    struct limits limits;
    limits_start(&limits, &limit, PID, root);
    return limits;
}

static void assert_tells(struct limits *limits, const char *words) {
    const char *text = limits_check(limits);
    assert_non_null(text);
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", text, words);
    }
    assert_null(limits_check(limits)); /* once */
}

/* 100 MiB, in memory and swap; told again only after it fell below 90. */
static void a_process(void **state) {
    struct limits limits = limits_of(100 << 20, 0);
    (void)state;
    assert_true(limits_wanted(&limits));
    assert_null(limits_check(&limits)); /* no such process */
    put_status(60, 39);
    put_machine(1); /* a size is of the process alone */
    assert_null(limits_check(&limits));
    put_status(60, 40);
    assert_tells(&limits, "the process has 100.0 MiB in memory and swap, its limit is 100.0 MiB");
    put_status(95, 0);
    assert_null(limits_check(&limits));
    put_status(101, 0);
    assert_null(limits_check(&limits)); /* still the same time */
    put_status(89, 0);
    assert_null(limits_check(&limits));
    put_status(101, 0);
    assert_tells(&limits, "the process has 101.0 MiB");
}

static void none(void **state) {
    struct limits limits = limits_of(0, 0);
    (void)state;
    put_status(1 << 20, 0);
    assert_false(limits_wanted(&limits));
    assert_null(limits_check(&limits));
}

static void an_address_space(void **state) {
    struct limits limits = limits_of(0, 80);
    (void)state;
    put_status(100, 0); /* 400 MiB of addresses */
    put("/proc/77/limits",
        "Limit  Soft  Hard  Units\nMax address space unlimited unlimited bytes\n");
    assert_null(limits_check(&limits));
    put("/proc/77/limits", "Max address space         524289000  unlimited bytes\n");
    assert_null(limits_check(&limits));
    put("/proc/77/limits", "Max address space         524288000  unlimited bytes\n");
    assert_tells(&limits, "400.0 MiB of the 500.0 MiB of address space");
}

static void the_machine(void **state) {
    struct limits limits = limits_of(0, 80);
    (void)state;
    put_machine(201);
    assert_null(limits_check(&limits));
    put_machine(200);
    assert_tells(&limits, "the machine has 200.0 MiB of 1000.0 MiB left");
}

static void pressure(void **state) {
    struct limits limits = limits_of(0, 80);
    (void)state;
    put("/proc/pressure/memory", "some avg10=99.00 avg60=9\nfull avg10=19.90 avg60=9.9 total=1\n");
    assert_null(limits_check(&limits));
    put("/proc/pressure/memory", "some avg10=99.00 avg60=9\nfull avg10=34.50 avg60=9.9 total=1\n");
    assert_tells(&limits, "waited for memory during 34% of the last ten seconds");
}

static void group_is(uint64_t used, uint64_t most) {
    uint64_t found[2] = {0};
    assert_true(limits_group(77, root, &found[0], &found[1]));
    assert_int_equal(found[0], used << 20);
    assert_int_equal(found[1], most << 20);
}

/* The group nearest to its limit tells, whatever is between it and the process; what the kernel
 * would give back first does not count. */
static void a_control_group(void **state) {
    struct limits limits = limits_of(0, 80);
    (void)state;
    put("/proc/77/cgroup", "1:name=systemd:/other\n0::/outer/inner\n");
    put_number("/sys/fs/cgroup/outer/memory.max", 100);
    put_number("/sys/fs/cgroup/outer/memory.current", 90);
    put("/sys/fs/cgroup/outer/memory.stat", "anon 5\nactive_file 1\ninactive_file 10485761\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    put_number("/sys/fs/cgroup/outer/inner/memory.current", 90);
    assert_null(limits_check(&limits));
    put("/sys/fs/cgroup/outer/memory.stat", "inactive_file 10485760\n");
    assert_tells(&limits, "the control group /outer uses 80.0 MiB of the 100.0 MiB that it may");
    put_number("/sys/fs/cgroup/outer/memory.current", 80);
    assert_null(limits_check(&limits));
    put_number("/sys/fs/cgroup/outer/inner/memory.high", 91); /* where it is throttled */
    assert_tells(&limits, "/outer/inner uses 90.0 MiB of the 91.0 MiB");
    group_is(90, 91);
}

/* In a container the group's path may be the host's: then the mount is the group. */
static void a_container(void **state) {
    struct limits limits = limits_of(0, 50);
    (void)state;
    put("/proc/77/cgroup", "0::/docker/0123\n");
    put_number("/sys/fs/cgroup/memory.max", 10);
    put_number("/sys/fs/cgroup/memory.current", 6);
    assert_tells(&limits, "the control group / uses 6.0 MiB of the 10.0 MiB");
}

static void version_1(void **state) {
    struct limits limits = limits_of(0, 50);
    (void)state;
    put("/proc/77/cgroup", "5:cpu,memory:/job\n0::/\n");
    put_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", (unsigned long)1 << 42);
    put_number("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", 10);
    put_number("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", 6);
    put("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 2097152\n");
    assert_null(limits_check(&limits));
    put_number("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", 7);
    assert_tells(&limits, "the control group /job uses 5.0 MiB of the 10.0 MiB");
    group_is(5, 10);
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_false(limits_group(77, root, &(uint64_t){0}, &(uint64_t){0}));
}

/* --- the log ---------------------------------------------------------------------------------- */

static void write_line(struct logfile *log, const char *line) {
    assert_int_equal(write(logfile_descriptor(log, strlen(line)), line, strlen(line)),
                     strlen(line));
}

static void assert_holds(const char *ending, const char *text) {
    char path[100];
    char found[100] = "";
    int fd;
    snprintf(path, sizeof path, "%s/log%s", root, ending);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, found, sizeof found - 1) >= 0);
    assert_string_equal(found, text);
    close(fd);
}

static void a_log(void **state) {
    struct logfile log;
    struct logfile other;
    char path[100];
    (void)state;
    snprintf(path, sizeof path, "%s/log", root);
    logfile_start(&log, path, 10);
    logfile_start(&other, path, 10);
    write_line(&log, "1 long line\n"); /* never cut */
    assert_holds("", "1 long line\n");
    write_line(&other, "2\n");
    assert_holds("", "2\n");
    assert_holds(".1", "1 long line\n");
    write_line(&log, "345678\n"); /* finds that the other has begun a new one */
    assert_holds("", "2\n345678\n");
    write_line(&log, "9\n");
    assert_holds("", "9\n");
    assert_holds(".1", "2\n345678\n");
    logfile_end(&log);
    logfile_end(&other);
    logfile_start(&log, "", 10);
    assert_int_equal(logfile_descriptor(&log, 100), STDERR_FILENO);
    logfile_end(&log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process, start, end),
        cmocka_unit_test_setup_teardown(none, start, end),
        cmocka_unit_test_setup_teardown(an_address_space, start, end),
        cmocka_unit_test_setup_teardown(the_machine, start, end),
        cmocka_unit_test_setup_teardown(pressure, start, end),
        cmocka_unit_test_setup_teardown(a_control_group, start, end),
        cmocka_unit_test_setup_teardown(a_container, start, end),
        cmocka_unit_test_setup_teardown(version_1, start, end),
        cmocka_unit_test_setup_teardown(a_log, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
