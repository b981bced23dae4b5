/* SPDX-License-Identifier: MIT */
/* other.c: a function of the same name as one of subject.c, which is another. */
#include <stddef.h>

static char memory[64];

static __attribute__((noinline, noclone)) void *there_twice(size_t size) {
    return memory + size % 32;
}

void *other(size_t size);
void *other(size_t size) {
    return there_twice(size);
}
