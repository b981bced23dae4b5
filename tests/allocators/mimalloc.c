/* SPDX-License-Identifier: MIT */
/* mimalloc.c: calls mimalloc by its own names, and malloc, which is mimalloc's, too. Prints "COUNT
 * BYTES FREED". */
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    size_t count = 0, bytes = 0, freed = 0;
    char text[100];
    for (size_t i = 1; i <= 100; i++) {
        void *volatile block = i % 2 ? mi_malloc(i) : malloc(10 * i);
        bytes += i % 2 ? i : 10 * i;
        count++;
        if (i % 5 == 0) {
            i % 2 ? mi_free(block) : free(block);
            freed++;
        } else if (i % 5 == 1) {
            block = i % 2 ? mi_realloc(block, 5000) : realloc(block, 5000);
            bytes += 5000;
            count++;
            freed++; /* the older one */
        }
    }
    for (size_t i = 1; i <= 10; i++) {
        void *volatile block = mi_calloc(i, 7);
        bytes += 7 * i;
        count++;
        (void)block;
    }
    /* No block for a buffer. */
    write(1, text, (size_t)snprintf(text, sizeof text, "%zu %zu %zu\n", count, bytes, freed));
    return 0;
}
