/* SPDX-License-Identifier: MIT */
/* Tests of runtime/base/space.c: growth, a limit that refuses, a forked child's own file. */
#define _GNU_SOURCE
#include "tests/unit/space_fixture.h"

#include "runtime/base/sys.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { ITEM = 64, ITEMS = 1024, SEGMENT_BYTES = ITEM * ITEMS };

static struct memtrace_segment *add(struct space *space, uint32_t owner, uint32_t index) {
    struct memtrace_segment *segment =
        space_segment(space, MEMTRACE_SEGMENT_TREE, owner, index, ITEM, ITEMS);
    if (segment != NULL) {
        space_publish(segment);
    }
    return segment;
}

static void grows(void **state) {
    struct space *space = space_fixture_open();
    struct memtrace_segment copy;
    int fd;
    (void)state;
    fd = (int)space_descriptor(space);
    assert_true(fd > 2);
    for (uint32_t i = 0; i < 200; i++) {
        struct memtrace_segment *segment = add(space, 7, i);
        assert_non_null(segment);
        memset((char *)segment + sizeof *segment, (int)i, SEGMENT_BYTES - sizeof *segment);
    }
    assert_int_equal(space->header->end, MEMTRACE_HEADER_SIZE + 200 * SEGMENT_BYTES);
    for (uint32_t i = 0; i < 200; i++) { /* it is all in the file */
        uint64_t offset = MEMTRACE_HEADER_SIZE + (uint64_t)i * SEGMENT_BYTES;
        unsigned char last;
        assert_int_equal(pread(fd, &copy, sizeof copy, (off_t)offset), sizeof copy);
        assert_int_equal(copy.magic, MEMTRACE_SEGMENT_MAGIC);
        assert_int_equal(copy.owner, 7);
        assert_int_equal(copy.index, i);
        assert_int_equal(copy.size, SEGMENT_BYTES);
        assert_int_equal(pread(fd, &last, 1, (off_t)(offset + SEGMENT_BYTES - 1)), 1);
        assert_int_equal(last, i);
    }
    close(fd);
    space_fixture_close(space);
}

/* A large one has blocks for some segments more than were asked for, but not for many; where there
 * is no room for these, one that fits is given all the same. */
static void a_large_one_grows_ahead(void **state) {
    struct space *space = space_fixture_open();
    struct rlimit before;
    struct rlimit small;
    struct stat status;
    uint32_t count = 0;
    uint32_t ahead = 0;
    (void)state;
    while (space->header->end < 8 << 20) {
        assert_non_null(add(space, 0, count++));
        assert_int_equal(space->header->end, MEMTRACE_HEADER_SIZE + count * SEGMENT_BYTES);
        assert_int_equal(stat(space->path, &status), 0);
        assert_true((uint64_t)status.st_size >= space->header->end);
        assert_true((uint64_t)status.st_size <= space->header->end + space->header->end / 32);
        ahead += (uint64_t)status.st_size > space->header->end;
    }
    assert_true(ahead >= 20);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = (rlim_t)status.st_size + SEGMENT_BYTES;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    while (space->header->end + SEGMENT_BYTES <= small.rlim_cur) {
        assert_non_null(add(space, 0, count++));
    }
    assert_null(add(space, 0, count));
    setrlimit(RLIMIT_FSIZE, &before);
    space_fixture_close(space);
}

/* Another thread, or a child, takes a range, gets no blocks for it, and gives it back: unless
 * something is behind it, as all do. What is prepared meanwhile is behind it. */
static void what_was_given_back_is_not_prepared(void **state) {
    struct space *space = space_fixture_open();
    uint64_t *end = &space->header->end;
    struct memtrace_segment *segment;
    uint64_t refused;
    (void)state;
    assert_non_null(add(space, 0, 0));
    refused = __atomic_add_fetch(end, SEGMENT_BYTES, __ATOMIC_RELAXED);
    space_prepare(space, 4 * SEGMENT_BYTES, SYS_PAGES_NOW);
    __atomic_compare_exchange_n(end, &refused, refused - SEGMENT_BYTES, 0, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < 8; i++) {
        segment = add(space, 0, i);
        assert_non_null(segment);
        assert_true(sys_readable((char *)segment + SEGMENT_BYTES - 8));
        memset((char *)segment + sizeof *segment, (int)i, SEGMENT_BYTES - sizeof *segment);
    }
    space_fixture_close(space);
}

static volatile sig_atomic_t limit_signals;

static void on_limit(int number) {
    (void)number;
    limit_signals++;
}

static void a_limit_refuses_without_a_signal(void **state) {
    struct space *space = space_fixture_open();
    struct rlimit before, small;
    struct sigaction action = {.sa_handler = on_limit}, old;
    unsigned had = 0;
    (void)state;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 1 << 20;
    sigaction(SIGXFSZ, &action, &old);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    while (add(space, 0, had) != NULL) {
        had++;
        assert_true(had < 100);
    }
    assert_null(add(space, 0, had));
    setrlimit(RLIMIT_FSIZE, &before);
    sigaction(SIGXFSZ, &old, NULL);
    assert_true(had > 0);
    assert_int_equal(limit_signals, 0);
    assert_true(space->refused);
    space_lost(space, MEMTRACE_LOST_EVENTS, 3);
    assert_int_equal(space->header->lost[MEMTRACE_LOST_EVENTS], 3);
    space_fixture_close(space);
}

/* Once refused, none is tried for a while; and then there may be room again. */
static void a_refusal_is_not_for_good(void **state) {
    struct space *space = space_fixture_open();
    struct rlimit before;
    struct rlimit none;
    struct timespec while_ns = {.tv_nsec = 250 * 1000 * 1000};
    uint64_t end = space->header->end;
    (void)state;
    getrlimit(RLIMIT_FSIZE, &before);
    none = (struct rlimit){0, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    assert_null(add(space, 0, 0));
    assert_int_equal(space->header->end, end);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_null(add(space, 0, 0));
    nanosleep(&while_ns, NULL);
    assert_non_null(add(space, 0, 0));
    space_fixture_close(space);
}

/* How many descriptors are open. */
static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) != -1;
    }
    return count;
}

static void no_descriptor_stays_open(void **state) {
    int before = open_descriptors();
    struct space *space = space_fixture_open();
    (void)state;
    assert_int_equal(open_descriptors(), before);
    assert_non_null(add(space, 0, 0));
    space_prepare(space, 1 << 20, SYS_PAGES_LATER);
    while (space->header->end < 6 << 20) { /* some of it ahead */
        assert_non_null(add(space, 0, 1));
    }
    assert_int_equal(space_is_there(space), 1);
    assert_int_equal(open_descriptors(), before);
    unlink(space->path);
    assert_int_equal(space_is_there(space), 0);
    space_fixture_close(space);
}

/* It grows without its name, too, where it was held before; and then nothing stays open that is not
 * needed. */
static void one_is_held_where_the_name_may_go(void **state) {
    int before = open_descriptors();
    struct space *space = space_fixture_open();
    char other[sizeof space->path + 8];
    (void)state;
    snprintf(other, sizeof other, "%s.other", space->path);
    space_hold(space);
    assert_int_equal(open_descriptors(), before + 1);
    space_let_go(space);
    assert_int_equal(open_descriptors(), before);
    space_hold(space);
    assert_int_equal(rename(space->path, other), 0);
    space_let_go(space);
    assert_int_equal(open_descriptors(), before + 1);
    assert_non_null(add(space, 0, 0));
    assert_int_equal(open_descriptors(), before + 1);
    assert_int_equal(rename(other, space->path), 0);
    space_let_go(space);
    assert_int_equal(open_descriptors(), before);
    space_fixture_close(space);
}

static void a_closed_descriptor_is_opened_again(void **state) {
    struct space *space = space_fixture_open();
    struct stat status;
    int fd, other;
    (void)state;
    space_hold(space);
    fd = space->held;
    close(fd);
    other = open("/dev/null", O_RDWR);
    assert_int_equal(dup2(other, fd), fd); /* the program took the number */
    assert_non_null(add(space, 0, 0));
    space_close(space);
    assert_int_equal(fstat(fd, &status), 0); /* and keeps it */
    close(fd);
    close(other);
    space_fixture_close(space);
}

static int keep_even(void *argument, const struct memtrace_segment *segment) {
    (void)argument;
    return segment->index % 2 == 0;
}

/* In a child that may write no byte: the file is refused, and closed again. */
static int refused_child_checks(struct space *space) {
    char path[] = "/tmp/memtrace-unit-XXXXXX";
    struct rlimit none = {0, 0};
    int fd = mkstemp(path);
    int wrong = fd < 0;
    setrlimit(RLIMIT_FSIZE, &none);
    wrong += space_fork(space, fd, path, keep_even, NULL) == 0;
    wrong += fcntl(fd, F_GETFD) != -1;
    unlink(path);
    return wrong;
}

/* In the child: 0, or the number of what is wrong. */
static int child_checks(struct space *space, struct memtrace_segment **segments) {
    char path[] = "/dev/shm/memtrace-unit-XXXXXX"; /* where a page that is read takes room */
    const uint8_t *base = space->base;
    struct memtrace_segment *added;
    struct stat status;
    int fd = mkstemp(path);
    int wrong = 0;
    if (fd < 0 || space_fork(space, fd, path, keep_even, NULL) != 0) {
        return 1;
    }
    if (space->base != base) {
        wrong = 2;
    }
    stat(space->path, &status);
    if (status.st_blocks * 512 > MEMTRACE_HEADER_SIZE + 3 * SEGMENT_BYTES + 3 * 4096) {
        wrong = 5; /* room was taken for what is left behind */
    }
    for (uint32_t i = 0; i < 6; i++) {
        /* Of those left behind only the void header is there. */
        if (i % 2 == 0 ? ((unsigned char *)segments[i])[SEGMENT_BYTES - 1] != 100 + i
                       : segments[i]->kind != 0) {
            wrong = 3;
        }
    }
    ((unsigned char *)segments[0])[SEGMENT_BYTES - 1] = 1; /* the parent must not see this */
    added = add(space, 0, 6);
    if (added == NULL || (uint8_t *)added != base + MEMTRACE_HEADER_SIZE + 6 * SEGMENT_BYTES) {
        wrong = 4;
    }
    unlink(path);
    return wrong;
}

static void a_child_moves_to_its_own_file(void **state) {
    struct space *space = space_fixture_open();
    struct memtrace_segment *segments[6];
    int status;
    pid_t child;
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        segments[i] = add(space, 0, i);
        assert_non_null(segments[i]);
        ((unsigned char *)segments[i])[SEGMENT_BYTES - 1] = (unsigned char)(100 + i);
    }
    child = fork();
    if (child == 0) {
        _exit(refused_child_checks(space));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    child = fork();
    if (child == 0) {
        _exit(child_checks(space, segments));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(((unsigned char *)segments[i])[SEGMENT_BYTES - 1], 100 + i);
        assert_int_equal(segments[i]->kind, MEMTRACE_SEGMENT_TREE);
    }
    assert_int_equal(space->header->end, MEMTRACE_HEADER_SIZE + 6 * SEGMENT_BYTES);
    space_fixture_close(space);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(a_large_one_grows_ahead),
        cmocka_unit_test(what_was_given_back_is_not_prepared),
        cmocka_unit_test(a_limit_refuses_without_a_signal),
        cmocka_unit_test(a_refusal_is_not_for_good),
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(one_is_held_where_the_name_may_go),
        cmocka_unit_test(a_closed_descriptor_is_opened_again),
        cmocka_unit_test(a_child_moves_to_its_own_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
