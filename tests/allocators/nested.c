/* SPDX-License-Identifier: MIT */
/*
 * nested.c: an allocator with names of a ready-made set, whose functions lead to each other in each
 * way that compilers leave: by a jump, by a call, by a jump to one that calls. Prints
 * "BLOCKS BYTES LIVE" as the program has asked for them.
 */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define ALONE __attribute__((noipa, noinline))

static char memory[1 << 20];
static size_t used;
static volatile size_t calls; /* so that no function is too short to be followed */

ALONE void *mi_malloc(size_t size) {
    void *block = memory + used;
    used += (size + 31) / 16 * 16;
    return block;
}

ALONE void mi_free(void *block) {
    calls++;
    *(volatile char *)block = 1;
}

ALONE void mi_free_size(void *block, size_t size) { /* jumps */
    calls += size;
    mi_free(block);
}

ALONE void *mi_heap_alloc_new(void *heap, size_t size) { /* calls */
    char *block = mi_malloc(size);
    *block = heap != NULL;
    return block;
}

ALONE void *mi_new(size_t size) { /* jumps to one that calls */
    return mi_heap_alloc_new(NULL, size);
}

ALONE void *mi_heap_malloc(void *heap, size_t size) {
    char *block = memory + used;
    used += (size + 31) / 16 * 16;
    *block = heap != NULL;
    return block;
}

ALONE void *mi_malloc_small(size_t size) { /* jumps */
    return mi_heap_malloc(memory, size);
}

ALONE void *mi_zalloc(size_t size) { /* jumps to one that jumps */
    calls++;
    return mi_malloc_small(size);
}

int main(void) {
    char text[100];
    size_t bytes = 0, blocks = 0, freed = 0;
    for (size_t i = 1; i <= 100; i++) {
        void *volatile block[] = {mi_malloc(i), mi_heap_alloc_new(memory, i),
                                  mi_new(i),    mi_malloc_small(i),
                                  mi_zalloc(i), mi_heap_malloc(NULL, i)};
        size_t count = sizeof block / sizeof block[0];
        for (size_t k = 0; k < count; k++) {
            if (i % (k + 2) == 0) {
                k % 2 ? mi_free(block[k]) : mi_free_size(block[k], i);
                freed++;
            }
        }
        blocks += count;
        bytes += count * i;
    }
    write(1, text,
          (size_t)snprintf(text, sizeof text, "%zu %zu %zu\n", blocks, bytes, blocks - freed));
    return 0;
}
