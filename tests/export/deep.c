/* SPDX-License-Identifier: MIT */
/* deep.c DEPTH: a recursion that allocates at each level: as many call paths as it is deep. */
#include <stdlib.h>

static void *volatile kept;

static __attribute__((noinline)) void descend(long levels) {
    kept = malloc(16);
    if (levels > 0) {
        descend(levels - 1);
    }
    __asm__ volatile(""); /* no tail call */
}

int main(int argc, char **argv) {
    descend(argc > 1 ? atol(argv[1]) : 10);
    return 0;
}
