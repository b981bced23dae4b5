/* SPDX-License-Identifier: MIT */
/* gone_library.c: what gone.c opens. */
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *leak(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

void *entry(size_t size);
__attribute__((noinline)) void *entry(size_t size) {
    void *block = leak(size);
    ((char *)block)[0] = 2;
    return block;
}
