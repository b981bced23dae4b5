/* SPDX-License-Identifier: MIT */
/*
 * firststack.c: the main thread's stack where the C library does not tell of it, from what the
 * kernel put there: musl, and static programs. See libc.h.
 */
#define _GNU_SOURCE
#include "runtime/libc/libc.h"

#include <sys/auxv.h>

/* 16 random bytes that the kernel puts above the arrays. */
uintptr_t libc_stack_top(uintptr_t *entry) {
    *entry = 0;
    return getauxval(AT_RANDOM);
}

/* Who sets a variable that is not there gets another array, which does not lie on the stack. What a
 * constructor is called with tells nothing: with musl it is called with nothing. */
int libc_is_initial(char **environment, int argc, char **argv, char **envp) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t array = (uintptr_t)environment;
    (void)argc, (void)argv, (void)envp;
    return array > here && array < getauxval(AT_RANDOM);
}
