/* SPDX-License-Identifier: MIT */
/* held.c: holds a block, says where, and waits until its input ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *hold(size_t size) {
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

int main(void) {
    char *volatile small = hold(1000);
    char *volatile large = hold(3 << 20);
    printf("%p %p\n", (void *)small, (void *)large);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    free(small);
    free(large);
    return 0;
}
