/* SPDX-License-Identifier: MIT */
/* library.c: a library of hostile.py's subject, whose file's name is as bad as the rest. */
#include <stdlib.h>

void *library_call(size_t size);

static __attribute__((noinline)) void *library_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ(size_t size) {
    void *block = malloc(size);
    return block;
}

/* The loader looks for it by a hash of its name, so it has a good one. */
void *library_call(size_t size) {
    void *block = library_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ(size);
    *(char *)block = 1;
    return block;
}
