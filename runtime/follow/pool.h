/* SPDX-License-Identifier: MIT */
/*
 * pool.h: blocks that malloc does not give out: objects of custom pools, which are counted by the
 * pool's name and have no part in the heap's totals; and blocks of an allocator that stands in for
 * malloc, which are blocks of the heap. Both are counted on the same path as malloc's, and lie in
 * shadow heaps of their own, of 8 bytes a granule: allocators may put them that near to each other,
 * and a pool's object may begin where the heap's block does in which it lies.
 *
 * Called by process/api.c and allocator_calls.c, with the calling thread, from outside of events.
 */
#ifndef RUNTIME_FOLLOW_POOL_H
#define RUNTIME_FOLLOW_POOL_H

#include "runtime/entry/event.h"

/* Where blocks go. */
struct pool {
    struct shadow_heap *heap; /* runtime.pools; or runtime.foreign: blocks of the heap */
    int number;               /* of the pool's name (pool_number()) */
    int is_reused;            /* blocks may end without our being told: when their place is given
                                 out again, as by a garbage collector. That is no loss */
};

struct pool_object {
    uintptr_t address;
    uint64_t size;
    uint64_t replaces; /* the name in the recording of the one that ended for it; 0: none */
    uint32_t how;      /* as event_alloc()'s */
};

/* Whether blocks of this table are the heap's. */
INLINE int pool_is_of_heap(const struct shadow_heap *heap) {
    return heap == &runtime.foreign;
}

/* The frame below which the pool's blocks are charged. */
INLINE uint64_t pool_class(const struct pool *pool) {
    return MEMTRACE_FRAME_POOL + (uint64_t)(pool->number > 0 ? pool->number : 0);
}

/* Where the region's header says that the table is there. */
INLINE uint64_t *pool_told(const struct shadow_heap *heap) {
    struct memtrace_header *header = runtime.space.header;
    return pool_is_of_heap(heap) ? &header->foreign_heap : &header->pool_heap;
}

/* The number of this name, made if new; -1: there are too many. */
int pool_number(const char *name);

/* The number of the pool that this context is of. */
uint32_t pool_of_context(uint32_t context);

/* It was allocated. */
void pool_add(struct thread *thread, const struct pool *pool, const struct pool_object *object,
              struct frame caller);

/* It is about to be freed. Its name in the recording, if it has one and another is to replace it;
 * else 0. */
uint64_t pool_remove(struct thread *thread, struct shadow_heap *heap, uintptr_t address,
                     int replaced, struct frame caller);

/* For what may fail or free: takes it out, to be counted as freed or put back. */
struct pool_taken {
    struct heap_block block;
    int is_known;
};
void pool_take(struct thread *thread, struct shadow_heap *heap, uintptr_t address,
               struct pool_taken *taken);
/* As pool_remove(). */
uint64_t pool_count_taken(struct thread *thread, struct shadow_heap *heap,
                          const struct pool_taken *taken, int replaced, struct frame caller);
void pool_put_back(struct shadow_heap *heap, const struct pool_taken *taken);
/* The function that was to change it has come back, with `object` in its place, or without a block:
 * it has failed, unless 0 bytes were asked for. Its name in the recording, if it has one and ended
 * for the other; else 0. From outside of events, without a thread. */
uint64_t pool_end_resized(struct shadow_heap *heap, const struct pool_taken *taken,
                          const struct pool_object *object, struct frame caller);

/* How large the block is that begins at this address, for a function that is not told: what one
 * that it called has just said of it. 0: nothing is known. */
uint64_t pool_size_at(const struct shadow_heap *heap, uintptr_t address);

/* In which blocks of the heap and in which mappings the live blocks of each pool lie: what the
 * pool's allocator has taken from malloc and mmap, of which it has given out a part. Noted in the
 * region when the process ends, in programs that have pools (poolroom.c). Called by
 * process/runtime.c, within the runtime. Others may allocate meanwhile. */
void poolroom_note(void);

/* All objects of the pool are freed. */
void pool_reset(struct thread *thread, const struct pool *pool, struct frame caller);

#endif
