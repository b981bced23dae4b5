/* SPDX-License-Identifier: MIT */
/*
 * bump.c: an allocator that takes no lock, keeps its blocks 64 bytes apart and never takes one
 * back. A request of STOP bytes stops inside until bump_go is set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default")))

enum { STOP = 77777, HEADER = 32 };

static _Alignas(4096) unsigned char arena[256 << 20];
static size_t used;

PUBLIC int bump_stopped, bump_go;

static size_t size_of(const void *block) {
    return *(const size_t *)((uintptr_t)block - HEADER);
}

static void stop_here(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    __atomic_store_n(&bump_stopped, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&bump_go, __ATOMIC_ACQUIRE)) {
        nanosleep(&moment, NULL);
    }
}

static void *take(size_t alignment, size_t size) {
    size_t bytes = (size + HEADER + alignment + 63) & ~(size_t)63;
    size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    uintptr_t block = ((uintptr_t)arena + at + HEADER + alignment - 1) & ~(alignment - 1);
    if (size == STOP) {
        stop_here();
    }
    if (at + bytes > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(block - HEADER) = size;
    return (void *)block;
}

static void *place(size_t alignment, size_t size) {
    return take(alignment < 32 ? 32 : alignment, size);
}

PUBLIC void *malloc(size_t size) {
    return take(32, size);
}

PUBLIC void free(void *block) {
    (void)block;
}

PUBLIC void *calloc(size_t number, size_t size) {
    return take(32, number * size); /* fresh memory: zero */
}

PUBLIC void *realloc(void *old, size_t size) {
    void *block = take(32, size);
    if (old != NULL && block != NULL) {
        memcpy(block, old, size_of(old) < size ? size_of(old) : size);
    }
    return block;
}

PUBLIC void *memalign(size_t alignment, size_t size) {
    return place(alignment, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return place(alignment, size);
}

PUBLIC void *valloc(size_t size) {
    return place(4096, size);
}

PUBLIC void *pvalloc(size_t size) {
    return place(4096, (size + 4095) & ~(size_t)4095);
}

PUBLIC int posix_memalign(void **out, size_t alignment, size_t size) {
    *out = place(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

PUBLIC size_t malloc_usable_size(void *block) {
    return block != NULL ? size_of(block) : 0;
}
