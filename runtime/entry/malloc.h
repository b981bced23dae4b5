/* SPDX-License-Identifier: MIT */
/* malloc.h: the malloc family as fast.c and the functions of other allocators use it. */
#ifndef RUNTIME_ENTRY_MALLOC_H
#define RUNTIME_ENTRY_MALLOC_H

#include "runtime/base/compiler.h"
#include "runtime/entry/real.h"

#include <stddef.h>
#include <stdint.h>

/* What malloc and free begin with, so that they cost next to nothing where nothing is counted. Any
 * of the ways is right at any time, but MALLOC_OFF, which is for good. Handler-safe. */
enum malloc_way {
    MALLOC_EXACT,
    MALLOC_SAMPLED,
    MALLOC_SAMPLED_AGAIN, /* after other modes: there may be blocks that were counted exactly */
    MALLOC_STOPPED,
    MALLOC_OFF,
};
void malloc_prepare(enum malloc_way way);

/* The events that fast.c leaves to others, by a jump: who called it is their caller. malloc_slow
 * and free_slow are declared in real.h, where what is taken for the functions of the C library
 * begins. */
HIDDEN void *malloc_count_slow(void *pointer,
                               size_t size); /* what real.malloc returned; returns it */
HIDDEN void *calloc_slow(size_t number, size_t size);
HIDDEN void *realloc_slow(void *old, size_t size);
HIDDEN void *calloc_count_slow(void *pointer, size_t size);
HIDDEN void *malloc_raise_peak_slow(void *pointer); /* what was counted; returns it */
/* Of a block whose size was added to the bytes freed in `totals`, too early: at the maximum. */
HIDDEN void free_from_peak_slow(void *pointer, size_t size, struct memtrace_counts *totals);

HIDDEN void *malloc_count_aligned_slow(void *pointer, size_t size, size_t alignment);
HIDDEN void *aligned_alloc_slow(size_t alignment, size_t size);
HIDDEN void *memalign_slow(size_t alignment, size_t size);

/* Operators new and new[]. */
HIDDEN void *new_slow(size_t size);
HIDDEN void *new_array_slow(size_t size);
HIDDEN void *new_nothrow_slow(size_t size, const void *tag);
HIDDEN void *new_array_nothrow_slow(size_t size, const void *tag);
HIDDEN void *new_aligned_slow(size_t size, size_t alignment);
HIDDEN void *new_array_aligned_slow(size_t size, size_t alignment);

/* As malloc and its relatives do, by functions of the allocator `from`. frame: MACHINE_FRAME() of
 * the one that was called, whose caller is charged. */
void *malloc_from(const struct real *from, void *(*function)(size_t), size_t size, uintptr_t frame);
void *malloc_zeroed_from(const struct real *from, size_t number, size_t size, uintptr_t frame);
void *malloc_resized_from(const struct real *from, void *old, size_t size, uintptr_t frame);
int malloc_placed_from(const struct real *from, void **out, size_t alignment, size_t size,
                       uintptr_t frame);
void *malloc_aligned_from(const struct real *from, void *(*function)(size_t, size_t),
                          size_t alignment, size_t size, uintptr_t frame);
void malloc_return_to(const struct real *to, void *pointer, uintptr_t slot);

#endif
