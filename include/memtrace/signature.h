/* SPDX-License-Identifier: MIT */
/*
 * signature.h: what a function of a program that allocates does, as the command, the compiler
 * passes and the runtime tell each other (allocators.h, named.h). For C and C++.
 */
#ifndef MEMTRACE_SIGNATURE_H
#define MEMTRACE_SIGNATURE_H

#include <stdint.h>

enum {
    MEMTRACE_SITE_NAME = 64,       /* of a pool, its end included */
    MEMTRACE_ALLOCATOR_NUMBERS = 6 /* arguments that a function may get in registers */
};

/* What a function does. */
enum memtrace_allocator_kind {
    MEMTRACE_ALLOCATOR_ALLOC,
    MEMTRACE_ALLOCATOR_ZALLOC,  /* the same, filled with zeros */
    MEMTRACE_ALLOCATOR_REALLOC, /* `old` ends, if there is a result, or none was asked for */
    MEMTRACE_ALLOCATOR_FREE,
    MEMTRACE_ALLOCATOR_RESET, /* all blocks of the pool end */
    MEMTRACE_ALLOCATOR_KINDS
};

/* What a function does, and what its arguments are by their numbers, 1 to
 * MEMTRACE_ALLOCATOR_NUMBERS; 0: there is none. */
struct memtrace_allocator_signature {
    uint8_t kind;        /* enum memtrace_allocator_kind */
    uint8_t size, times; /* how large: their product. No size: 0 bytes */
    uint8_t align;
    uint8_t old_block; /* of kind REALLOC */
    uint8_t pointer;   /* FREE: the block. Others: where the function writes the block's address,
                          and its result is an int that is 0 if there is one; 0: it returns it */
    uint8_t is_heap;   /* blocks of the heap, not of a pool */
};

#endif
