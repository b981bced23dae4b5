/* SPDX-License-Identifier: MIT */
/*
 * seccomp.c: prctl and syscall, by which a program puts filters on its own system calls. From the
 * next one on the kernel may kill it for a call of ours: so what we need soon is made ready, and
 * the filter is remembered (base/sandbox.h). One that is installed in another way is not seen.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

enum { PREPARED_BYTES = 2 << 20 };

/* As the system call does, with its result. */
static long install(unsigned operation, unsigned flags, const void *argument) {
    uint32_t before = sandbox_filters;
    long result;
    if (runtime_is_ready()) {
        space_prepare(&runtime.space, PREPARED_BYTES, SYS_PAGES_LATER);
    }
    space_hold(&runtime.space);
    if (operation == SECCOMP_SET_MODE_FILTER) {
        sandbox_add(argument);
    } else if (operation == SECCOMP_SET_MODE_STRICT) {
        sandbox_be_strict();
    }
    result = sys_set_seccomp(operation, flags, argument);
    if (result < 0 && sandbox_filters > before) {
        sandbox_take_back();
    }
    space_let_go(&runtime.space);
    return result;
}

/* For the entries in runtime/machine. */
long seccomp_by_syscall(long number, unsigned operation, unsigned flags, const void *argument);
long seccomp_result(long result);

/* What a system call's result is as a function's. */
long seccomp_result(long result) {
    if ((unsigned long)result > -4096UL) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

PUBLIC int prctl(int option, ...) {
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++) {
        argument[i] = va_arg(list, unsigned long);
    }
    va_end(list);
    if (UNLIKELY(option == PR_SET_SECCOMP && argument[0] == SECCOMP_MODE_FILTER)) {
        return (int)seccomp_result(install(SECCOMP_SET_MODE_FILTER, 0, (const void *)argument[1]));
    }
    if (UNLIKELY(option == PR_SET_SECCOMP && argument[0] == SECCOMP_MODE_STRICT)) {
        return (int)seccomp_result(install(SECCOMP_SET_MODE_STRICT, 0, NULL));
    }
    if (UNLIKELY(option == PR_SET_NO_NEW_PRIVS)) { /* rules that are not seen here may follow */
        space_hold(&runtime.space);
    }
    return REAL(prctl)(option, argument[0], argument[1], argument[2], argument[3]);
}

long seccomp_by_syscall(long number, unsigned operation, unsigned flags, const void *argument) {
    (void)number;
    return seccomp_result(install(operation, flags, argument));
}
