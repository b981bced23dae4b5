/* SPDX-License-Identifier: MIT */
/*
 * heap.c: a program whose heap grows by a step for each line of stdin: what `memtrace top` shows of
 * it is known to the byte. It prints "ready" after each step.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 1000, LARGE = 100000, MOST = 1000 };

static void *volatile kept[MOST];
static unsigned count;

__attribute__((noinline)) static void keep(size_t size) {
    kept[count++] = malloc(size);
}

__attribute__((noinline)) static void few(void) {
    keep(LARGE);
    count += 0;
}

__attribute__((noinline)) static void many(void) {
    for (volatile int i = 0; i < 3; i++) {
        keep(SMALL);
    }
}

__attribute__((noinline)) static void pass(void) {
    void *volatile block = malloc(SMALL);
    free(block);
}

__attribute__((noinline)) static void step(void) {
    few();
    many();
    pass();
    count += 0;
}

int main(void) {
    char line[16];
    do {
        step();
        if (write(STDOUT_FILENO, "ready\n", strlen("ready\n")) < 0) {
            return 1;
        }
    } while (read(STDIN_FILENO, line, sizeof line) > 0);
    return 0;
}
