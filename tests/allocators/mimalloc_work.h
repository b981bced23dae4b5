/* SPDX-License-Identifier: MIT */
/* mimalloc_work.h: each function of mimalloc is called; how many blocks that makes, and how many of
 * these it frees. Included by mimalloc_counts.c and mimalloc_library.c. */
#include <mimalloc.h>

/* Declared for C++ in some versions. */
void *mi_new(size_t size);
void *mi_new_n(size_t count, size_t size);
void *mi_new_nothrow(size_t size);
void *mi_new_aligned(size_t size, size_t alignment);
void *mi_new_realloc(void *block, size_t size);

enum { ROUNDS = 50, KINDS = 40 };

static void *volatile kept[KINDS][ROUNDS];

/* Of ROUNDS each. Every other one frees three of what each function keeps. */
enum {
    WORK_MADE = 24 + 9,
    WORK_REALLOCATED = 9,
    ALIGNED_MADE = 19 + 4,
    ALIGNED_REALLOCATED = 4,
    FREED = 3
};

/* A reallocation always to another place, which mimalloc counts. */
__attribute__((noinline)) static void work(mi_heap_t *heap) {
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = 24 + 8 * i;
        void *volatile *to = NULL;
        int kind = 0;
#define KEEP(block) (to = &kept[kind++][i], *to = (block))
        KEEP(mi_malloc(size));
        KEEP(mi_malloc_small(size));
        KEEP(mi_mallocn(3, size));
        KEEP(mi_zalloc(size));
        KEEP(mi_zalloc_small(size));
        KEEP(mi_calloc(size, 5));
        KEEP(mi_new(size));
        KEEP(mi_new_n(size, 2));
        KEEP(mi_new_nothrow(size));
        KEEP(mi_realloc(NULL, size));
        KEEP(mi_realloc(mi_malloc(size), 10000));
        KEEP(mi_reallocn(mi_malloc(size), 100, 200));
        KEEP(mi_reallocf(mi_malloc(size), 9000));
        KEEP(mi_reallocarray(mi_malloc(size), 3, 4000));
        KEEP(mi_rezalloc(mi_zalloc(size), 7000));
        KEEP(mi_recalloc(mi_zalloc(size), 1, 7000));
        KEEP(mi_new_realloc(mi_new(size), 6000));
        KEEP(mi_heap_malloc(heap, size));
        KEEP(mi_heap_malloc_small(heap, size));
        KEEP(mi_heap_mallocn(heap, 3, size));
        KEEP(mi_heap_zalloc(heap, size));
        KEEP(mi_heap_calloc(heap, 7, size));
        KEEP(mi_heap_realloc(heap, mi_heap_malloc(heap, size), 5000));
        KEEP(mi_heap_rezalloc(heap, mi_heap_zalloc(heap, size), 5000));
        if (i % 2 == 0) {
            mi_free(kept[0][i]);
            mi_free_size(kept[1][i], size);
            mi_free(kept[10][i]);
        }
    }
}

__attribute__((noinline)) static void aligned(mi_heap_t *heap) {
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = 40 + 16 * i;
        void *volatile *to = NULL;
        void *block = NULL;
        int kind = 0;
        KEEP(mi_malloc_aligned(size, 8));
        KEEP(mi_malloc_aligned(size, 128));
        KEEP(mi_malloc_aligned_at(size, 64, 16));
        KEEP(mi_zalloc_aligned(size, 8));
        KEEP(mi_zalloc_aligned(size, 256));
        KEEP(mi_calloc_aligned(3, size, 32));
        KEEP(mi_memalign(64, size));
        KEEP(mi_aligned_alloc(64, size / 64 * 64 + 64));
        KEEP(mi_valloc(size));
        KEEP(mi_pvalloc(size));
        KEEP(mi_new_aligned(size, 512));
        KEEP(mi_realloc_aligned(mi_malloc_aligned(size, 8), 10000, 8));
        KEEP(mi_realloc_aligned(mi_malloc_aligned(size, 64), 10000, 64));
        KEEP(mi_rezalloc_aligned(mi_zalloc_aligned(size, 64), 10000, 64));
        KEEP(mi_heap_malloc_aligned(heap, size, 64));
        KEEP(mi_heap_zalloc_aligned(heap, size, 64));
        KEEP(mi_heap_calloc_aligned(heap, 2, size, 64));
        KEEP(mi_heap_realloc_aligned(heap, mi_heap_malloc_aligned(heap, size, 64), 10000, 64));
        KEEP(mi_posix_memalign(&block, 128, size) == 0 ? block : NULL);
        if (i % 2 == 0) {
            mi_free(kept[1][i]);
            mi_free_aligned(kept[6][i], 64);
            mi_free_size_aligned(kept[12][i], 10000, 64);
        }
    }
}
