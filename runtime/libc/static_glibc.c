/* SPDX-License-Identifier: MIT */
/* static_glibc.c: a program that holds glibc. See libc.h. */
#include "runtime/libc/libc.h"
#include "runtime/libc/static.h"

/* Not there where the program brings an allocator of its own. */
extern void *__libc_malloc(size_t size) __attribute__((weak));

int libc_describes_signals(void) {
    return 1;
}

int libc_is_outermost(uintptr_t pc) {
    (void)pc;
    return 0;
}

void libc_note_outermost(const void *pc) {
    (void)pc;
}

int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 1;
}

void *libc_next(const char *name) {
    return static_find(name);
}

int libc_is_glibc_malloc(const void *function) {
    return function == (void *)__libc_malloc;
}
