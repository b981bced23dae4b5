/* SPDX-License-Identifier: MIT */
/*
 * call.h: raw system calls, as the program's filters allow them. For sys.c and apart.c.
 */
#ifndef RUNTIME_BASE_CALL_H
#define RUNTIME_BASE_CALL_H

#include "runtime/base/compiler.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

#include <errno.h>

/* Where a filter would kill the program for it, the call is refused instead. */
INLINE long call_kernel(long n, long a, long b, long c, long d, long e, long f) {
    const uint64_t arguments[] = {(unsigned long)a, (unsigned long)b, (unsigned long)c,
                                  (unsigned long)d, (unsigned long)e, (unsigned long)f};
    return sandbox_allows(n, arguments) ? machine_call(n, a, b, c, d, e, f) : -EPERM;
}

#define CALL0(n)             call_kernel((n), 0, 0, 0, 0, 0, 0)
#define CALL1(n, a)          call_kernel((n), (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b)       call_kernel((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c)    call_kernel((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) call_kernel((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL6(n, a, b, c, d, e, f)                                                                 \
    call_kernel((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

enum { SIGNALS_SIZE = sizeof(struct sys_signals) };

#endif
