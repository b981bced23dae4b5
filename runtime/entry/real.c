/* SPDX-License-Identifier: MIT */
/*
 * real.c: the functions behind ours. See real.h. Called by all that stand in for others, and by
 * process/runtime.c.
 */
#define _GNU_SOURCE
#include "runtime/entry/real.h"

#include "memtrace/format.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"
#include "runtime/libc/objects.h"

#include <string.h>

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

#define FIND(name)                real.name = libc_next(#name)
#define FIND_ALLOCATOR(name, ...) real.name = objects_nearer(#name, libc_next(#name));

/* Resolvers of ifuncs run while the loader relocates: that of a library that is bound at once
 * before ours is, that of the program before it has set up what threads have of their own. Neither
 * is called for. */
static int real_is_loaded(void) {
    static void *volatile here = (void *)&here;
    return here != NULL && thread_self != NULL;
}

void real_find(void) {
    if (finding || !real_is_loaded()) {
        return;
    }
    finding = 1;
    REAL_FAMILY(FIND_ALLOCATOR)
    FIND_ALLOCATOR(malloc_usable_size)
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
    FIND_ALLOCATOR(free) /* last: its presence says that all are there */
    finding = 0;
}

/* --- MEMTRACE_ZERO=1 ----------------------------------------------------------------------------
 *
 * Stands between malloc.c and the real allocator. Whole blocks are filled, not only the bytes asked
 * for: so the part by which realloc lets a block grow in its place is zero already, unless the
 * program wrote there. */

static struct real below;

static void *zero_fill(void *pointer, size_t from) {
    size_t usable = pointer != NULL ? below.malloc_usable_size(pointer) : 0;
    if (usable > from) {
        memset((char *)pointer + from, 0, usable - from);
    }
    return pointer;
}

/* By calloc, which knows what comes fresh from the kernel. */
static void *zero_malloc(size_t size) {
    return zero_fill(below.calloc(1, size), size);
}

static void *zero_calloc(size_t number, size_t size) {
    return zero_fill(below.calloc(number, size), number * size);
}

static void *zero_realloc(void *old, size_t size) {
    size_t usable = old != NULL ? below.malloc_usable_size(old) : 0;
    return zero_fill(below.realloc(old, size), usable);
}

static int zero_posix_memalign(void **out, size_t alignment, size_t size) {
    int result = below.posix_memalign(out, alignment, size);
    if (result == 0) {
        zero_fill(*out, 0);
    }
    return result;
}

static void *zero_aligned_alloc(size_t alignment, size_t size) {
    return zero_fill(below.aligned_alloc(alignment, size), 0);
}

static void *zero_memalign(size_t alignment, size_t size) {
    return zero_fill(below.memalign(alignment, size), 0);
}

static void *zero_valloc(size_t size) {
    return zero_fill(below.valloc(size), 0);
}

static void *zero_pvalloc(size_t size) {
    return zero_fill(below.pvalloc(size), 0);
}

void real_zero(void) {
    below = real;
    real.malloc = zero_malloc;
    real.calloc = zero_calloc;
    real.realloc = zero_realloc;
    real.posix_memalign = zero_posix_memalign;
    real.aligned_alloc = zero_aligned_alloc;
    real.memalign = zero_memalign;
    real.valloc = zero_valloc;
    real.pvalloc = zero_pvalloc;
}
