/* SPDX-License-Identifier: MIT */
/*
 * zero.c: stands between malloc.c and the real allocator. See zero.h.
 *
 * Whole blocks are filled, not only the bytes asked for: so the part by which realloc lets a block
 * grow in its place is zero already, unless the program wrote there.
 */
#define _GNU_SOURCE
#include "runtime/entry/zero.h"

#include "runtime/entry/real.h"

#include <string.h>

static struct real below;

static void *fill(void *pointer, size_t from) {
    size_t usable = pointer != NULL ? below.malloc_usable_size(pointer) : 0;
    if (usable > from) {
        memset((char *)pointer + from, 0, usable - from);
    }
    return pointer;
}

/* By calloc, which knows what comes fresh from the kernel. */
static void *zero_malloc(size_t size) {
    return fill(below.calloc(1, size), size);
}

static void *zero_calloc(size_t number, size_t size) {
    return fill(below.calloc(number, size), number * size);
}

static void *zero_realloc(void *old, size_t size) {
    size_t usable = old != NULL ? below.malloc_usable_size(old) : 0;
    return fill(below.realloc(old, size), usable);
}

static int zero_posix_memalign(void **out, size_t alignment, size_t size) {
    int result = below.posix_memalign(out, alignment, size);
    if (result == 0) {
        fill(*out, 0);
    }
    return result;
}

static void *zero_aligned_alloc(size_t alignment, size_t size) {
    return fill(below.aligned_alloc(alignment, size), 0);
}

static void *zero_memalign(size_t alignment, size_t size) {
    return fill(below.memalign(alignment, size), 0);
}

static void *zero_valloc(size_t size) {
    return fill(below.valloc(size), 0);
}

static void *zero_pvalloc(size_t size) {
    return fill(below.pvalloc(size), 0);
}

void zero_start(void) {
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
