/* SPDX-License-Identifier: MIT */
/* grower.c: a program that can be watched: says its pid, then for each number that it reads holds
 * so many blocks of 64 KiB more, and says that. It ends when there is nothing more to read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64 << 10 };

static void **last; // a chain, so that none of it is lost

__attribute__((noinline)) static void hold_blocks(int count) {
    for (int i = 0; i < count; i++) {
        void **block = malloc(BLOCK);
        if (block == NULL) {
            exit(1);
        }
        memset(block, 0, BLOCK);
        *block = last;
        last = block;
    }
}

int main(void) {
    char line[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("pid %d\n", getpid());
    while (fgets(line, sizeof line, stdin) != NULL) {
        int count = atoi(line);
        hold_blocks(count);
        printf("held %d\n", count);
    }
    return 0;
}
