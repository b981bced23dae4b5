/* SPDX-License-Identifier: MIT */
/* subject.c SIZE...: a block of each size; every second one is freed at once. */
#include <stdlib.h>
#include <string.h>

static char *allocate(size_t size) {
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        char *block = allocate(strtoul(arguments[i], NULL, 10));
        if (i % 2 == 0) {
            free(block);
        }
    }
    return 0;
}
