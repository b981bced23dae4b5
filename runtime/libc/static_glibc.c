/* SPDX-License-Identifier: MIT */
/* static_glibc.c: a program that holds glibc. See libc.h. */
#include "runtime/libc/libc.h"
#include "runtime/libc/static.h"

/* Not there where the program brings an allocator of its own. */
extern void *__libc_malloc(size_t size) __attribute__((weak));

void *libc_next(const char *name) {
    return static_find(name);
}

int libc_is_glibc_malloc(const void *function) {
    return function == (void *)__libc_malloc;
}

int libc_spaces_blocks(const void *function) {
    return libc_is_glibc_malloc(function);
}
