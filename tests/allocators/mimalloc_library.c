/* SPDX-License-Identifier: MIT */
/* mimalloc_library.c: a program that calls each function of mimalloc's library. Prints for work()
 * and for aligned() how many blocks they make and free. */
#include "mimalloc_work.h"

#include <stdio.h>
#include <unistd.h>

/* Versions 2 and 3.0 (whose numbers have three digits, or begin with 2) have a function without a
 * name for mi_realloc_aligned() with an alignment of a word. */
#define IS_UNNAMED                                                                                 \
    (MI_MALLOC_VERSION < 1000 || (MI_MALLOC_VERSION >= 20000 && MI_MALLOC_VERSION < 30000))

int main(void) {
    enum { FREEING = ROUNDS / 2 * FREED };
    mi_heap_t *heap = mi_heap_new();
    char text[100];                   /* no block for a buffer */
    mi_free(mi_heap_malloc(heap, 1)); /* what it makes for itself then, it has made */
    work(heap);
    aligned(heap);
    write(1, text,
          (size_t)snprintf(text, sizeof text, "%d %d\n%d %d\n", ROUNDS * WORK_MADE,
                           ROUNDS * WORK_REALLOCATED + FREEING,
                           ROUNDS * (ALIGNED_MADE - IS_UNNAMED),
                           ROUNDS * ALIGNED_REALLOCATED + FREEING));
    return 3;
}
