/* SPDX-License-Identifier: MIT */
/* real.c: finding the functions behind ours. See real.h. */
#define _GNU_SOURCE
#include "runtime/entry/real.h"

#include "memtrace/format.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"
#include "runtime/libc/objects.h"

struct real real = {.pads = 1}; /* all goes to the slow halves */
uintptr_t real_free_limit;
static void *(*malloc_unpadded)(size_t);

enum { EARLY_HEADER = 16 };
static const size_t glibc_least = 4 * sizeof(size_t); /* from one of its blocks to the next */

_Alignas(64) unsigned char real_early[REAL_EARLY_BYTES];
static size_t early_used;
static int finding;

void *real_early_alloc(size_t size, size_t alignment) {
    size_t used = __atomic_load_n(&early_used, __ATOMIC_RELAXED);
    size_t start;
    if (alignment < EARLY_HEADER) {
        alignment = EARLY_HEADER;
    }
    do {
        start = (used + EARLY_HEADER + alignment - 1) & ~(alignment - 1);
        if (alignment > 4096 || size > REAL_EARLY_BYTES || start + size > REAL_EARLY_BYTES) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&early_used, &used, start + size, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    *(size_t *)(void *)(real_early + start - EARLY_HEADER) = size;
    return real_early + start;
}

size_t real_early_size(const void *pointer) {
    return *(const size_t *)(const void *)((const unsigned char *)pointer - EARLY_HEADER);
}

void *real_symbol(const char *name) {
    return libc_function(name);
}

static void *malloc_padded(size_t size) {
    return malloc_unpadded(size < REAL_PADDED ? REAL_PADDED : size);
}

#define FIND(name)           real.name = libc_next(#name)
#define FIND_ALLOCATOR(name) real.name = objects_nearer(#name, libc_next(#name))

/* Resolvers of ifuncs run while the loader relocates: that of a library that is bound at once
 * before ours is, that of the program before it has set up what threads have of their own. Neither
 * is called for. */
static int is_loaded(void) {
    static void *volatile here = (void *)&here;
    return here != NULL && thread_self != NULL;
}

void real_find(void) {
    if (finding || !is_loaded()) {
        return;
    }
    finding = 1;
    FIND_ALLOCATOR(calloc);
    FIND_ALLOCATOR(malloc);
    FIND_ALLOCATOR(realloc);
    FIND_ALLOCATOR(posix_memalign);
    FIND_ALLOCATOR(aligned_alloc);
    FIND_ALLOCATOR(memalign);
    FIND_ALLOCATOR(valloc);
    FIND_ALLOCATOR(pvalloc);
    FIND_ALLOCATOR(malloc_usable_size);
    FIND(mmap);
    FIND(munmap);
    FIND(mremap);
    FIND(sbrk);
    FIND(brk);
    FIND(fork);
    FIND(_exit);
    FIND(_Fork);
    FIND(__cxa_finalize);
    FIND(sigaction);
    FIND(signal);
    FIND(sysv_signal);
    real.is_glibc = libc_is_glibc_malloc((void *)real.malloc);
    real.pads = (!libc_spaces_blocks((void *)real.malloc) || glibc_least < REAL_PADDED) &&
                __asan_init == NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (real.pads) {
        malloc_unpadded = real.malloc;
        real.malloc = malloc_padded;
    }
    malloc_prepare(MALLOC_EXACT);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    FIND_ALLOCATOR(free); /* last: its presence says that all are there */
    finding = 0;
}
