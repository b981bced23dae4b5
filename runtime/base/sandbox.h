/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h: the seccomp filters that the program has put on itself. A filter may kill the process
 * for a system call that the program never makes, but we do. So each of ours asks the filters first
 * (sys.c): they are programs that we can run, too.
 */
#ifndef RUNTIME_BASE_SANDBOX_H
#define RUNTIME_BASE_SANDBOX_H

#include "runtime/base/compiler.h"

#include <linux/filter.h>

extern uint32_t sandbox_filters; /* how many there are */

/* From here on this one is asked as well. `program` is the argument of the system call, which may
 * be anything. */
void sandbox_add(const struct sock_fprog *program);
/* The same of one that somebody else read, unless it is known: its instructions, which can be read.
 */
void sandbox_know(const struct sock_filter *code, uint32_t length);
/* As SECCOMP_MODE_STRICT: nothing but reading, writing and ending. */
void sandbox_be_strict(void);
/* The last one was refused by the kernel. */
void sandbox_take_back(void);

/* Whether one is as SECCOMP_MODE_STRICT, which takes the processor's time stamps away, too. */
int sandbox_is_strict(void);

int sandbox_ask(long number, const uint64_t arguments[6]);

/* Whether a system call of ours ends well: done or refused, but neither killed, trapped nor left to
 * another process. */
INLINE int sandbox_allows(long number, const uint64_t arguments[6]) {
    return LIKELY(LOAD_RELAXED(&sandbox_filters) == 0) || sandbox_ask(number, arguments);
}

#endif
