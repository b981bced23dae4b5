/* SPDX-License-Identifier: MIT */
/* crowd.c: a program with 131,072 call paths, which goes on allocating in 16 of them until it is
 * killed. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEEP = 17, FLAT = 4 };

static void *volatile kept[1 << DEEP];
static unsigned count;
static volatile unsigned long calls;

static void grow(int depth);

__attribute__((noinline)) static void left(int depth) {
    grow(depth);
    calls++;
}

__attribute__((noinline)) static void right(int depth) {
    grow(depth);
    calls++;
}

__attribute__((noinline)) static void leaf(void) {
    free(kept[count]);
    kept[count++] = malloc(64);
}

__attribute__((noinline)) static void grow(int depth) {
    if (depth == 0) {
        leaf();
    } else {
        left(depth - 1);
        right(depth - 1);
    }
    calls++;
}

int main(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    grow(DEEP);
    if (write(STDOUT_FILENO, "ready\n", strlen("ready\n")) < 0) {
        return 1;
    }
    for (;;) {
        count = 0;
        grow(FLAT);
        nanosleep(&pause, NULL);
    }
}
