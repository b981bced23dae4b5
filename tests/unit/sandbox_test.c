/* SPDX-License-Identifier: MIT */
/* Tests of runtime/base/sandbox.c: what a filter says of a system call, as the kernel would. */
#define _GNU_SOURCE
#include "runtime/base/sandbox.h"

#include "runtime/base/sys.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define LOAD(field)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define WHEN(operation, constant, yes, no)                                                         \
    BPF_JUMP(BPF_JMP | (operation) | BPF_K, constant, yes, no)

static int allows(long number, uint64_t first) {
    const uint64_t arguments[6] = {first};
    return sandbox_allows(number, arguments);
}

/* Adds it, and takes it back behind the test. */
static void add(struct sock_filter *code, size_t count) {
    struct sock_fprog program = {.len = (unsigned short)count, .filter = code};
    sandbox_add(&program);
}

static int take_back(void **state) {
    (void)state;
    while (sandbox_filters != 0) {
        sandbox_take_back();
    }
    return 0;
}

static void by_number(void **state) {
    struct sock_filter code[] = {LOAD(nr),
                                 WHEN(BPF_JEQ, SYS_write, 3, 0),
                                 WHEN(BPF_JEQ, SYS_close, 3, 0),
                                 WHEN(BPF_JGE, SYS_openat, 3, 0),
                                 ANSWER(SECCOMP_RET_KILL_THREAD),
                                 ANSWER(SECCOMP_RET_ALLOW),
                                 ANSWER(SECCOMP_RET_ERRNO | EPERM),
                                 ANSWER(SECCOMP_RET_TRAP)};
    (void)state;
    assert_int_equal(allows(SYS_read, 0), 1);
    add(code, sizeof code / sizeof *code);
    assert_int_equal(allows(SYS_read, 0), 0);
    assert_int_equal(allows(SYS_write, 0), 1);
    assert_int_equal(allows(SYS_close, 0), 1); /* refused: that ends well */
    assert_int_equal(allows(SYS_openat, 0), 0);
    assert_int_equal(sys_close(-1), -EBADF); /* not asked of the kernel's filters: there are none */
    assert_int_equal(sys_fstat(-1, NULL), -EPERM);
}

/* Arithmetic, memory and the index register, over an argument. */
static void by_argument(void **state) {
    struct sock_filter code[] = {LOAD(args[0]),
                                 BPF_STMT(BPF_ST, 3),
                                 BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
                                 BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                 BPF_STMT(BPF_LD | BPF_MEM, 3),
                                 BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 8),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
                                 ANSWER(SECCOMP_RET_ALLOW),
                                 ANSWER(SECCOMP_RET_KILL_PROCESS)};
    (void)state;
    add(code, sizeof code / sizeof *code);
    assert_int_equal(allows(SYS_read, 0x4242), 1);
    assert_int_equal(allows(SYS_read, 0x4243), 0);
    assert_int_equal(allows(SYS_read, 0x014242), 0);
}

static void all_are_asked(void **state) {
    struct sock_filter yes[] = {ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_filter no[] = {LOAD(nr), WHEN(BPF_JSET, 1, 0, 1), ANSWER(SECCOMP_RET_KILL_PROCESS),
                               ANSWER(SECCOMP_RET_LOG)};
    (void)state;
    add(yes, 1);
    add(no, 4);
    add(yes, 1);
    assert_int_equal(allows(SYS_write, 0), 0); /* 1 */
    assert_int_equal(allows(SYS_read, 0), 1);  /* 0 */
    sandbox_be_strict();
    assert_int_equal(allows(SYS_read, 0), 1);
    assert_int_equal(allows(SYS_open, 0), 0);
    sandbox_take_back();
    assert_int_equal(allows(SYS_open, 0), 1);
}

static void what_is_no_filter(void **state) {
    struct sock_filter yes[] = {ANSWER(SECCOMP_RET_ALLOW)};
    struct sock_fprog empty = {.len = 0, .filter = yes};
    struct sock_fprog wild = {.len = 1, .filter = (struct sock_filter *)8};
    (void)state;
    /* The kernel will refuse it; if not, nothing is done that it might forbid. */
    const struct sock_fprog *programs[] = {NULL, &empty, &wild};
    for (int i = 0; i < 3; i++) {
        sandbox_add(programs[i]);
        assert_int_equal(allows(SYS_write, 0), 1);
        assert_int_equal(allows(SYS_close, 0), 0);
        sandbox_take_back();
    }
    assert_int_equal(allows(SYS_close, 0), 1);
}

/* As many as a program likes: what is not known is forbidden. */
static void more_than_are_kept(void **state) {
    struct sock_filter yes[2000];
    (void)state;
    for (int i = 0; i < 2000; i++) {
        yes[i] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    }
    for (int i = 0; i < 8; i++) {
        add(yes, 2000);
        assert_int_equal(allows(SYS_close, 0), 1);
    }
    add(yes, 2000);
    assert_int_equal(allows(SYS_close, 0), 0);
    for (int i = 0; i < 100; i++) {
        add(yes, 1);
    }
    assert_int_equal(allows(SYS_close, 0), 0);
    assert_int_equal(allows(SYS_write, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_number, take_back),
        cmocka_unit_test_teardown(by_argument, take_back),
        cmocka_unit_test_teardown(all_are_asked, take_back),
        cmocka_unit_test(what_is_no_filter),
        cmocka_unit_test_teardown(more_than_are_kept, take_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
