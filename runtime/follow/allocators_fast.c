/* SPDX-License-Identifier: MIT */
/*
 * allocators_fast.c: calls of functions that are led to us (allocators.h) where nothing is out of
 * the ordinary: the call path is one that the thread remembers (stack/recall.h), what counts it and
 * where its record goes is there, and nobody is to be told. Anything else is left to
 * allocator_calls.c, which does then what is not done yet.
 *
 * It is built to use general registers alone, and calls only what is built so: the entries
 * (machine.h) keep no others before these functions, but all before those of allocator_calls.c,
 * which may call what they like.
 */
#include "runtime/follow/allocator_call.h"
#include "runtime/stack/recall.h"

/* The calling thread is inside from here on, if its events are counted in the ordinary way, and it
 * need not look at the clock; else NULL. A forked child finds the struct wiped: so the clock's
 * place is read before the gate, which says that it is there. */
INLINE struct thread *enter(struct frame caller) {
    struct thread *thread = thread_self;
    const volatile clock_word *clock = thread->clock_word;
    SIGNAL_FENCE();
    if (UNLIKELY(thread->gate != GATE_OPEN) || UNLIKELY(*clock != thread->fast_seen)) {
        return NULL;
    }
    STORE_RELAXED(&thread->gate, event_place(caller));
    SIGNAL_FENCE();
    if (UNLIKELY(LOAD_RELAXED(&thread->record) == NULL)) { /* a handler forked meanwhile */
        STORE_RELAXED(&thread->gate, GATE_NONE);
        return NULL;
    }
    return thread;
}

/* A pool's table, of which the compiler knows the granule. */
INLINE struct shadow_heap table_of(const struct pool *pool) {
    return (struct shadow_heap){.root = pool->heap->root, .granule_shift = MEMTRACE_POOL_SHIFT};
}

/* --- a block ends ----------------------------------------------------------------------------- */

/* What counts it. NULL: that is not the ordinary. `bucket`: of its lifetime; NULL: a short one. */
INLINE struct memtrace_cell *find_ending(const struct thread *thread, int of_heap,
                                         const struct heap_block *block, uint32_t **bucket) {
    uint32_t lifetime = ledger_lifetime_bucket(heap_age(block->birth_tick, thread->tick));
    struct memtrace_cell *cell = ledger_cell(thread->column, block->context);
    *bucket = NULL;
    if (UNLIKELY(cell == NULL) ||
        (of_heap &&
         UNLIKELY(block->thread != thread->id ||
                  peak_is_left(&thread->peak, peak_live(thread->counts) - (int64_t)block->size)))) {
        return NULL;
    }
    if (UNLIKELY(lifetime != 0)) {
        *bucket = ledger_bucket(&runtime.ledger, cell, lifetime);
        return *bucket != NULL ? cell : NULL;
    }
    return cell;
}

/* The block was taken out, and is counted as freed. 1, or 0: it is not the ordinary. */
INLINE int count_ended(struct thread *thread, int of_heap, const struct heap_block *block) {
    uint32_t *bucket;
    struct memtrace_cell *cell = find_ending(thread, of_heap, block, &bucket);
    int temporary = 0;
    if (UNLIKELY(cell == NULL)) {
        return 0;
    }
    if (of_heap) {
        counter_add(&thread->counts->free_count, 1);
        counter_add(&thread->counts->free_bytes, block->size);
        temporary = thread->last_block == block->start;
    }
    ledger_free_in(cell, runtime.space.header, block->size, temporary);
    if (UNLIKELY(bucket != NULL)) {
        counter_increment(bucket);
    }
    return 1;
}

/* The block at this address, if there is one, ends. 1, or 0: it is not the ordinary, and the block
 * is where it was. */
INLINE int end_block(struct thread *thread, int of_heap, const struct shadow_heap *table,
                     uint8_t *leaf, uintptr_t address) {
    struct heap_block block;
    uint64_t *record = heap_look_up(table, leaf, address, thread->tick, &block);
    if (record == NULL) {
        return 1;
    }
    if (UNLIKELY(!count_ended(thread, of_heap, &block))) {
        return 0;
    }
    STORE_RELAXED(record, 0);
    return 1;
}

/* The block that was taken out before the function was called. */
INLINE int end_resized(struct thread *thread, struct allocator_call *call, uintptr_t block) {
    struct pool_taken *taken = allocator_call_taken(call);
    if (taken->is_known != sites_times) {
        return 1;
    }
    if ((block == 0 && allocator_call_size(call) != 0) ||
        !count_ended(thread, pool_is_of_heap(allocator_call_site(call)->pool.heap),
                     &taken->block)) {
        return 0;
    }
    taken->is_known = 0;
    return 1;
}

/* --- a block begins --------------------------------------------------------------------------- */

/* What it is charged to. 0: it takes more to tell, or there is no room for it. */
INLINE uint32_t find_context(struct thread *thread, const struct pool *pool,
                             const struct frame *caller) {
    struct walker *walker = thread->walker;
    struct context_id path = {0};
    if (LIKELY(runtime.settings.stacks != MEMTRACE_STACKS_NONE)) {
        path.value = recall_context(&runtime.world, walker, caller);
    }
    if (UNLIKELY((int32_t)path.value <= 0)) { /* cut, or not known */
        return 0;
    }
    return pool_is_of_heap(pool->heap) ? path.value
                                       : context_cache_look(&walker->cache, path, pool_class(pool));
}

/* Counts it, where another that was at its address and has gone unseen is counted as freed. */
INLINE int begin_block(struct thread *thread, const struct pool *pool, uintptr_t address,
                       uint64_t size, const struct frame *caller) {
    struct heap_block block = {
        .size = size, .thread = thread->id, .birth_tick = thread->tick, .start = address};
    struct shadow_heap table = table_of(pool);
    uint8_t *leaf = heap_leaf(&table, address);
    int of_heap = pool_is_of_heap(pool->heap);
    struct memtrace_cell *cell;
    if (UNLIKELY(leaf == NULL || pool->number < 0 || LOAD_ACQUIRE(pool_told(pool->heap)) == 0)) {
        return 0;
    }
    block.context = find_context(thread, pool, caller);
    cell = LIKELY(block.context != 0) ? ledger_cell(thread->column, block.context) : NULL;
    if (UNLIKELY(cell == NULL) || UNLIKELY(!end_block(thread, of_heap, &table, leaf, address)) ||
        (of_heap &&
         UNLIKELY(peak_is_passed(&thread->peak, peak_live(thread->counts) + (int64_t)size))) ||
        UNLIKELY(heap_insert_into(&table, leaf, &block) != 0)) {
        return 0;
    }
    ledger_alloc_in(cell, runtime.space.header, size);
    if (of_heap) {
        counter_add(&thread->counts->alloc_count, 1);
        counter_add(&thread->counts->alloc_bytes, size);
    }
    return 1;
}

/* --- the entries' ----------------------------------------------------------------------------- */

/* Each: 1, or 0: the function of allocator_calls.c whose name is the first half is to be called,
 * too. */

HIDDEN int allocator_resizes_fast(struct allocator_call *call) {
    struct pool_taken *taken = allocator_call_taken(call);
    const struct allocator_site *site = allocator_call_site(call);
    uintptr_t old = allocator_call_argument(call, site->signature.old_block);
    struct shadow_heap table;
    struct thread *thread;
    taken->is_known = 0;
    if (old == 0) {
        return 1;
    }
    thread = enter(allocator_call_caller(call));
    if (UNLIKELY(thread == NULL)) {
        return 0;
    }
    table = table_of(&site->pool);
    taken->is_known = heap_remove(&table, old, thread->tick, &taken->block) ? sites_times : 0;
    event_leave(thread);
    return 1;
}

HIDDEN int allocator_returned_fast(struct allocator_call *call, uint64_t result) {
    const struct allocator_site *site = allocator_call_site(call);
    struct frame caller = allocator_call_caller(call);
    uintptr_t address = allocator_call_block(call, result);
    int is_resized = site->signature.kind == MEMTRACE_ALLOCATOR_REALLOC;
    struct thread *thread;
    int is_done;
    if (address == 0 && !is_resized) {
        return 1;
    }
    thread = LIKELY(site->signature.size != 0) ? enter(caller) : NULL;
    if (UNLIKELY(thread == NULL)) {
        return 0;
    }
    is_done = (!is_resized || end_resized(thread, call, address)) &&
              (address == 0 ||
               begin_block(thread, &site->pool, address, allocator_call_size(call), &caller));
    event_leave(thread);
    return is_done;
}

HIDDEN int allocator_leaves_fast(struct allocator_call *call) {
    const struct allocator_site *site = allocator_call_site(call);
    uintptr_t address = allocator_call_argument(call, site->signature.pointer);
    struct shadow_heap table = table_of(&site->pool);
    uint8_t *leaf = heap_leaf(&table, address);
    struct thread *thread;
    int is_done;
    if (UNLIKELY(site->signature.kind == MEMTRACE_ALLOCATOR_RESET)) {
        return 0;
    }
    if (address == 0) {
        return 1;
    }
    thread = enter(allocator_call_caller(call));
    if (UNLIKELY(thread == NULL)) {
        return 0;
    }
    is_done =
        leaf == NULL || end_block(thread, pool_is_of_heap(site->pool.heap), &table, leaf, address);
    event_leave(thread);
    return is_done;
}
