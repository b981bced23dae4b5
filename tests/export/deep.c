/* SPDX-License-Identifier: MIT */
/* deep.c DEPTH [two]: a recursion that allocates at each level: as many call paths as it is deep.
 * "two": of two functions that call each other. */
#include <stdlib.h>

static void *volatile kept;

static __attribute__((noinline)) void descend(long levels) {
    kept = malloc(16);
    if (levels > 0) {
        descend(levels - 1);
    }
    __asm__ volatile(""); /* no tail call */
}

static void dig(long levels);

static __attribute__((noinline)) void shovel(long levels) {
    kept = malloc(16);
    if (levels > 0) {
        dig(levels - 1);
    }
    __asm__ volatile("");
}

static __attribute__((noinline)) void dig(long levels) {
    kept = malloc(16);
    if (levels > 0) {
        shovel(levels - 1);
    }
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    long levels = argc > 1 ? atol(argv[1]) : 10;
    if (argc > 2) {
        shovel(levels);
    } else {
        descend(levels);
    }
    return 0;
}
