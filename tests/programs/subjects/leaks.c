/* SPDX-License-Identifier: MIT */
/* leaks.c: keeps 100 blocks of 1003 bytes; the function that allocates has no symbol of its own
 * beside the debug information's, and no inlined call. For names.py. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void *leak(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

int main(void) {
    for (int i = 0; i < 100; i++) {
        leak(1003);
    }
    return 0;
}
