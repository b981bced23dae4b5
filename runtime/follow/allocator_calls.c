/* SPDX-License-Identifier: MIT */
/*
 * allocator_calls.c: calls of functions of the program that allocate are counted: of those that
 * lead to us (the functions called by machine_allocator_entries, where allocators_fast.c leaves
 * something to be done), and of those that report by themselves (memtrace/named.h), which call us
 * from the program.
 *
 * What the runtime knows of one that reports is one word of the program's, since libraries come and
 * go: the number of its pool, whether that is one of this region, and how many functions had been
 * led to us by --alloc when it was last looked whether this is one of them.
 */
#define _GNU_SOURCE
#include "memtrace/named.h"
#include "runtime/follow/allocator_call.h"
#include "runtime/follow/allocators.h"

/* --- both ------------------------------------------------------------------------------------- */

/* The block that may end is taken out before the function can give its place to another thread. */
INLINE void call_takes_out(struct shadow_heap *heap, uintptr_t old, struct pool_taken *taken,
                           struct frame caller) {
    struct thread *thread = old != 0 ? thread_get_for_free(event_place(caller)) : NULL;
    taken->is_known = 0;
    if (thread != NULL) {
        pool_take(thread, heap, old, taken);
        thread_done(thread);
    }
}

/* The block, or all of the pool, are freed. */
INLINE void call_frees(struct thread *thread, const struct pool *pool, uintptr_t block,
                       int is_reset, struct frame caller) {
    if (is_reset) {
        pool_reset(thread, pool, caller);
    } else {
        pool_remove(thread, pool->heap, block, 0, caller);
    }
    thread_done(thread);
}

/* --- those that lead to us -------------------------------------------------------------------- */

HIDDEN void allocator_resizes(struct allocator_call *call) {
    struct pool_taken *taken = allocator_call_taken(call);
    const struct allocator_site *site = allocator_call_site(call);
    call_takes_out(site->pool.heap, allocator_call_argument(call, site->signature.old_block), taken,
                   allocator_call_caller(call));
    taken->is_known = taken->is_known ? sites_times : 0;
}

HIDDEN void allocator_returned(struct allocator_call *call, uint64_t result) {
    const struct allocator_site *site = allocator_call_site(call);
    struct frame caller = allocator_call_caller(call);
    struct pool_object object = {
        .address = allocator_call_block(call, result),
        .size = allocator_call_size(call),
        .how = event_aligned(allocator_call_argument(call, site->signature.align))};
    struct thread *thread;
    if (site->signature.size == 0 && object.address != 0) {
        object.size = pool_size_at(site->pool.heap, object.address);
    }
    if (site->signature.kind == MEMTRACE_ALLOCATOR_REALLOC &&
        allocator_call_taken(call)->is_known == sites_times) {
        object.replaces =
            pool_end_resized(site->pool.heap, allocator_call_taken(call), &object, caller);
    }
    if (site->signature.kind == MEMTRACE_ALLOCATOR_ZALLOC) {
        object.how |= MEMTRACE_ALLOC_ZEROED;
    }
    thread = object.address != 0 && !LOAD_RELAXED(&site->is_silent)
                 ? thread_get(event_place(caller))
                 : NULL;
    if (thread != NULL) {
        pool_add(thread, &site->pool, &object, caller);
        thread_done(thread);
    }
}

HIDDEN void allocator_leaves(struct allocator_call *call) {
    const struct allocator_site *site = allocator_call_site(call);
    struct frame caller = allocator_call_caller(call);
    uintptr_t block = allocator_call_argument(call, site->signature.pointer);
    int is_reset = site->signature.kind == MEMTRACE_ALLOCATOR_RESET;
    struct thread *thread =
        block != 0 || is_reset ? thread_get_for_free(event_place(caller)) : NULL;
    if (thread != NULL) {
        call_frees(thread, &site->pool, block, is_reset, caller);
    }
}

/* --- those that report by themselves ---------------------------------------------------------- */

_Static_assert(sizeof(struct pool_taken) <= MEMTRACE_NAMED_KEPT * sizeof(uint64_t),
               "what is taken out has its place");

_Static_assert(sizeof(struct memtrace_named) == 16 + 8 + MEMTRACE_SITE_NAME,
               "the passes fill it field by field");

enum { LED_SHIFT = 16, REGION_SHIFT = 32 };

static uint32_t region_number = 1; /* of this process: never 0, so neither is a word */
static uint32_t has_heap_blocks;

uint32_t allocator_calls_flags(void) {
    return LOAD_RELAXED(&has_heap_blocks) ? MEMTRACE_FLAG_NAMED : 0;
}

void allocator_calls_forget_pools(void) {
    __atomic_fetch_add(&region_number, 1, __ATOMIC_RELAXED);
}

/* The blocks count here, and not where --alloc led the function as well; the pool has a number. */
static COLD int named_look_again(struct memtrace_named *named, uint64_t state) {
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

static struct pool named_pool(struct memtrace_named *named) {
    /* What stands in the upper part of the words of all functions that nothing has changed for. */
    uint64_t state = (uint64_t)LOAD_RELAXED(&region_number) << REGION_SHIFT |
                     (uint64_t)allocators_count() << LED_SHIFT;
    uint64_t known = LOAD_RELAXED(&named->runtime);
    uint64_t number_bits = (UINT64_C(1) << LED_SHIFT) - 1;
    return (struct pool){.heap = named->signature.is_heap ? &runtime.foreign : &runtime.pools,
                         .number = LIKELY((known & ~number_bits) == state)
                                       ? (int)(known & number_bits)
                                       : named_look_again(named, state),
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
        const struct pool pool = named_pool(named);
        if (named->signature.size == 0) {
            object.size = pool_size_at(pool.heap, object.address);
        }
        pool_add(thread, &pool, &object, caller);
        thread_done(thread);
    }
}

PUBLIC void memtrace_named_resizes(struct memtrace_named *named, const void *old, uint64_t *kept) {
    call_takes_out(named->signature.is_heap ? &runtime.foreign : &runtime.pools,
                   machine_untagged(old), (struct pool_taken *)(void *)kept, EVENT_CALLER());
}

PUBLIC void memtrace_named_leaves(struct memtrace_named *named, const void *block) {
    struct frame caller = EVENT_CALLER();
    int is_reset = named->signature.kind == MEMTRACE_ALLOCATOR_RESET;
    struct thread *thread =
        block != NULL || is_reset ? thread_get_for_free(event_place(caller)) : NULL;
    if (thread != NULL) {
        const struct pool pool = named_pool(named);
        call_frees(thread, &pool, machine_untagged(block), is_reset, caller);
    }
}
