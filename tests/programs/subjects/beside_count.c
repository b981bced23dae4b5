/* SPDX-License-Identifier: MIT */
/* beside_count.c: an allocator behind ours that counts who comes: calls of it that the program did
 * not make are ours. */
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

static unsigned long calls;

unsigned long calls_made(void) {
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

static void count(void) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    count();
    *out = __libc_memalign(alignment, size);
    return *out == NULL ? 12 : 0;
}

void free(void *pointer) {
    if (pointer != NULL) {
        count();
    }
    __libc_free(pointer);
}
