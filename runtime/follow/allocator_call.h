/* SPDX-License-Identifier: MIT */
/*
 * allocator_call.h: a function that is led to us (--alloc), and a call of it: what its arguments
 * are. Called by allocators.c, by allocators_fast.c, which counts what is ordinary, and by
 * allocator_calls.c, which counts the rest.
 */
#ifndef RUNTIME_FOLLOW_ALLOCATOR_CALL_H
#define RUNTIME_FOLLOW_ALLOCATOR_CALL_H

#include "runtime/follow/pool.h"

/* A function that was led to us. Written before anything leads here, then only read. */
struct allocator_site {
    uint64_t original; /* its moved instructions: the first word, as the entries know */
    struct pool pool;
    uint64_t address;
    struct memtrace_allocator_signature signature;
    uint8_t is_silent;             /* the function was built to report by itself */
    char name[MEMTRACE_SITE_NAME]; /* of the pool */
};

/* How often we have come to the process, where we are attached: what was begun before we left is
 * over. Not 0; a block that was taken out is known by it. */
extern HIDDEN int sites_times;

INLINE uint64_t allocator_call_argument(const struct allocator_call *call, uint8_t number) {
    return number != 0 ? call->number[number - 1] : 0;
}

INLINE struct frame allocator_call_caller(const struct allocator_call *call) {
    return event_caller((uintptr_t)call->frame);
}

INLINE const struct allocator_site *allocator_call_site(const struct allocator_call *call) {
    return (const struct allocator_site *)(uintptr_t)call->site;
}

/* What was taken out before the function was called. */
INLINE struct pool_taken *allocator_call_taken(struct allocator_call *call) {
    return (struct pool_taken *)(void *)call->taken;
}

INLINE uint64_t allocator_call_size(const struct allocator_call *call) {
    const struct allocator_site *site = allocator_call_site(call);
    uint64_t size = allocator_call_argument(call, site->signature.size);
    return site->signature.times != 0 &&
                   __builtin_mul_overflow(
                       size, allocator_call_argument(call, site->signature.times), &size)
               ? UINT64_MAX
               : size;
}

INLINE uintptr_t allocator_call_block(const struct allocator_call *call, uint64_t result) {
    const struct allocator_site *site = allocator_call_site(call);
    return site->signature.pointer == 0 ? result
           : (int)result == 0           ? *(const uintptr_t *)(uintptr_t)allocator_call_argument(
                                              call, site->signature.pointer)
                              : 0;
}

#endif
