/* SPDX-License-Identifier: MIT */
/* tags.c: writes to blocks of many sizes, without MemTrace: whether programs run here with memory
 * tags (MTE). */
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (size_t size = 1; size < 2000; size++) {
        char *volatile block = (char *)malloc(size);
        memset(block, 1, size);
        free(block);
    }
    return 0;
}
