/* SPDX-License-Identifier: MIT */
/*
 * self_reported.c: what functions report that allocate, and that were built to do so. See
 * self_reported.h.
 *
 * What the runtime knows of such a function is one word of the program's, since libraries come and
 * go: the number of its pool, whether that is one of this region, and how many functions had been
 * led to us by --alloc when it was last looked whether this is one of them.
 */
#define _GNU_SOURCE
#include "runtime/follow/self_reported.h"

#include "memtrace/named.h"
#include "runtime/follow/allocators.h"
#include "runtime/follow/pool.h"

_Static_assert(sizeof(struct pool_taken) <= MEMTRACE_NAMED_KEPT * sizeof(uint64_t),
               "what is taken out has its place");

_Static_assert(sizeof(struct memtrace_named) == 16 + 8 + MEMTRACE_SITE_NAME,
               "the passes fill it field by field");

enum { LED_SHIFT = 16, REGION_SHIFT = 32 };

static uint32_t region_number = 1; /* of this process: never 0, so neither is a word */
static uint32_t has_heap_blocks;

uint32_t self_reported_flags(void) {
    return LOAD_RELAXED(&has_heap_blocks) ? MEMTRACE_FLAG_NAMED : 0;
}

void self_reported_forget_pools(void) {
    __atomic_fetch_add(&region_number, 1, __ATOMIC_RELAXED);
}

/* What stands in the upper part of the words of all functions that nothing has changed for. */
static uint64_t newest(void) {
    return (uint64_t)LOAD_RELAXED(&region_number) << REGION_SHIFT | (uint64_t)allocators_count()
                                                                        << LED_SHIFT;
}

/* The blocks count here, and not where --alloc led the function as well; the pool has a number. */
static COLD int look_again(struct memtrace_named *named, uint64_t state) {
    int number = 0;
    allocators_leave_out((uintptr_t)named->function);
    if (!named->signature.is_heap) {
        number = pool_number(named->pool);
    } else if (named->signature.kind != MEMTRACE_ALLOCATOR_FREE) {
        STORE_RELAXED(&has_heap_blocks, 1);
        __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_NAMED, __ATOMIC_RELAXED);
    }
    if (number >= 0) { /* else there are too many names, and it is asked again */
        STORE_RELAXED(&named->runtime, state | (uint64_t)number);
    }
    return number;
}

static struct pool pool_of(struct memtrace_named *named) {
    uint64_t state = newest();
    uint64_t known = LOAD_RELAXED(&named->runtime);
    uint64_t number_bits = (UINT64_C(1) << LED_SHIFT) - 1;
    return (struct pool){.heap = named->signature.is_heap ? &runtime.foreign : &runtime.pools,
                         .number = LIKELY((known & ~number_bits) == state)
                                       ? (int)(known & number_bits)
                                       : look_again(named, state),
                         .is_reused = 1};
}

PUBLIC void memtrace_named_returns(struct memtrace_named *named, const void *block, size_t size,
                                   size_t times, size_t align, uint64_t *kept) {
    struct frame caller = EVENT_CALLER();
    struct pool_object object = {.address = machine_untagged(block), .how = event_aligned(align)};
    struct thread *thread;
    if (__builtin_mul_overflow(size, times, &object.size)) {
        object.size = UINT64_MAX;
    }
    if (named->signature.kind == MEMTRACE_ALLOCATOR_ZALLOC) {
        object.how |= MEMTRACE_ALLOC_ZEROED;
    }
    if (kept != NULL) {
        object.replaces =
            pool_end_resized(named->signature.is_heap ? &runtime.foreign : &runtime.pools,
                             (const struct pool_taken *)(const void *)kept, &object, caller);
    }
    thread = block != NULL ? thread_get(event_place(caller)) : NULL;
    if (thread != NULL) {
        const struct pool pool = pool_of(named);
        if (named->signature.size == 0) {
            object.size = pool_size_at(pool.heap, object.address);
        }
        pool_add(thread, &pool, &object, caller);
        thread_done(thread);
    }
}

/* It is taken out before the function can give its place to another thread. */
PUBLIC void memtrace_named_resizes(struct memtrace_named *named, const void *old, uint64_t *kept) {
    struct frame caller = EVENT_CALLER();
    struct pool_taken *taken = (struct pool_taken *)(void *)kept;
    struct thread *thread = old != NULL ? thread_get_for_free(event_place(caller)) : NULL;
    taken->is_known = 0;
    if (thread != NULL) {
        pool_take(thread, pool_of(named).heap, machine_untagged(old), taken);
        thread_done(thread);
    }
}

PUBLIC void memtrace_named_leaves(struct memtrace_named *named, const void *block) {
    struct frame caller = EVENT_CALLER();
    int is_reset = named->signature.kind == MEMTRACE_ALLOCATOR_RESET;
    struct thread *thread =
        block != NULL || is_reset ? thread_get_for_free(event_place(caller)) : NULL;
    if (thread == NULL) {
        return;
    }
    const struct pool pool = pool_of(named);
    if (is_reset) {
        pool_reset(thread, &pool, caller);
    } else {
        pool_remove(thread, pool.heap, machine_untagged(block), 0, caller);
    }
    thread_done(thread);
}
