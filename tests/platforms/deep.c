/* SPDX-License-Identifier: MIT */
/* deep.c DEPTH TIMES: allocates so often, by turns in two functions, below so many frames. */
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone))

static void *volatile block;

KEPT static void first(int size) {
    block = malloc((size_t)size);
    free(block);
}

KEPT static void second(int size) {
    first(size + 1);
    block = malloc((size_t)size);
    free(block);
}

KEPT static int down(int depth, int times) {
    volatile int here = depth;
    if (depth > 0) {
        return down(depth - 1, times) + here;
    }
    for (int i = 0; i < times; i++) {
        first(24 + i % 7);
        second(64);
    }
    return here;
}

int main(int count, char **arguments) {
    return count == 3 ? down(atoi(arguments[1]), atoi(arguments[2])) == -1 : 2;
}
