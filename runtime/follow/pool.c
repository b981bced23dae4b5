/* SPDX-License-Identifier: MIT */
/* pool.c: blocks that malloc does not give out. See pool.h. */
#define _GNU_SOURCE
#include "runtime/follow/pool.h"

#include "runtime/base/sys.h"
#include "runtime/entry/child.h"

int pool_number(const char *name) {
    int number = region_pool(&runtime.region, name);
    if (number < 0 && child_is_light() && child_grow()) { /* a new name is not its parent's */
        number = region_pool(&runtime.region, name);
    }
    return number;
}

/* Few programs have pools: their table is made for the first block. */
static int pool_ensure(struct shadow_heap *heap) {
    static struct trylock lock;
    uint64_t *told = pool_told(heap);
    if (LIKELY(LOAD_ACQUIRE(told) != 0)) {
        return 1;
    }
    if (!sys_take(&lock)) {
        return 0;
    }
    if (heap->root == NULL) {
        heap_init(heap, MEMTRACE_POOL_SHIFT);
    }
    STORE_RELEASE(told, (uintptr_t)heap->root);
    trylock_release(&lock);
    return heap->root != NULL;
}

/* --- freed ------------------------------------------------------------------------------------ */

/* What was taken out is counted as freed. Its name in the recording; 0: it is not in it. */
static uint64_t pool_end(struct thread *thread, const struct shadow_heap *heap,
                         const struct heap_block *block) {
    if (pool_is_of_heap(heap)) {
        event_count_freed(thread, block);
    } else {
        struct ledger_event event = {
            .context = block->context,
            .size = block->size,
            .lifetime_bucket = ledger_lifetime_bucket(heap_age(block->birth_tick, thread->tick))};
        child_inherited_pool_freed(block->thread, block->context, block->size);
        ledger_free(&runtime.ledger, thread->column, &event);
    }
    return thread->stream != NULL
               ? event_take_name(heap, block->start, block->thread, block->birth_tick)
               : 0;
}

/* One that is still here has gone without our being told. */
static void pool_end_missed(struct thread *thread, const struct pool *pool, uintptr_t address) {
    struct heap_block block;
    uint64_t name;
    if (!heap_remove(pool->heap, address, thread->tick, &block)) {
        return;
    }
    name = pool_end(thread, pool->heap, &block);
    if (!pool->is_reused) {
        space_lost(&runtime.space, MEMTRACE_LOST_FREES, 1);
    }
    if (name != 0) {
        event_record_free(thread, name);
    }
}

uint64_t pool_count_taken(struct thread *thread, struct shadow_heap *heap,
                          const struct pool_taken *taken, int replaced, struct frame caller) {
    uint64_t name;
    if (!taken->is_known || !event_enter(thread, event_place(caller))) {
        return 0;
    }
    event_tick(thread);
    name = pool_end(thread, heap, &taken->block);
    if (name != 0 && !replaced) {
        event_record_free(thread, name);
        name = 0;
    }
    event_leave(thread);
    return name;
}

void pool_take(struct thread *thread, struct shadow_heap *heap, uintptr_t address,
               struct pool_taken *taken) {
    taken->is_known =
        heap_remove(heap, address, tick_is_due(thread) ? tick_now() : thread->tick, &taken->block);
}

void pool_put_back(struct shadow_heap *heap, const struct pool_taken *taken) {
    if (taken->is_known) { /* and it has its number yet */
        heap_insert(heap, &taken->block);
    }
}

uint64_t pool_end_resized(struct shadow_heap *heap, const struct pool_taken *taken,
                          const struct pool_object *object, struct frame caller) {
    struct thread *thread;
    uint64_t name = 0;
    if (!taken->is_known) {
        return 0;
    }
    if (object->address == 0 && object->size != 0) { /* it failed */
        pool_put_back(heap, taken);
        return 0;
    }
    thread = thread_get_for_free(event_place(caller));
    if (thread != NULL) {
        name = pool_count_taken(thread, heap, taken, object->address != 0, caller);
        thread_done(thread);
    }
    return name;
}

uint64_t pool_size_at(const struct shadow_heap *heap, uintptr_t address) {
    struct heap_block inner;
    return heap_find(heap, address, tick_now(), &inner) && inner.start == address ? inner.size : 0;
}

uint64_t pool_remove(struct thread *thread, struct shadow_heap *heap, uintptr_t address,
                     int replaced, struct frame caller) {
    struct pool_taken taken;
    pool_take(thread, heap, address, &taken);
    return pool_count_taken(thread, heap, &taken, replaced, caller);
}

/* --- allocated -------------------------------------------------------------------------------- */

static void pool_count_added(struct thread *thread, const struct pool *pool,
                             const struct heap_block *block, const struct pool_object *object) {
    struct ledger_event event = {.context = block->context, .size = block->size};
    ledger_alloc(&runtime.ledger, thread->column, &event);
    if (pool_is_of_heap(pool->heap)) {
        counter_add(&thread->counts->alloc_count, 1);
        counter_add(&thread->counts->alloc_bytes, block->size);
        peak_grow(&thread->peak, runtime.space.header, event_live(thread));
    }
    if (thread->stream != NULL) {
        struct recorder_alloc alloc = {.address = block->start,
                                       .size = block->size,
                                       .replaces = object->replaces,
                                       .context = block->context,
                                       .flags = object->how & MEMTRACE_ALLOC_ZEROED,
                                       .alignment = (object->how >> EVENT_ALIGNMENT_SHIFT) & 63};
        event_record_pool(thread, pool->heap, &alloc);
    }
}

void pool_add(struct thread *thread, const struct pool *pool, const struct pool_object *object,
              struct frame caller) {
    struct heap_block block = {
        .size = object->size, .thread = thread->id, .start = object->address};
    if (!event_enter(thread, event_place(caller))) {
        return;
    }
    event_tick(thread);
    block.context = pool_is_of_heap(pool->heap)
                        ? event_context(thread, caller)
                        : event_class_context(thread, caller, pool_class(pool));
    block.birth_tick = thread->tick;
    pool_end_missed(thread, pool, object->address);
    if (block.context != 0 && pool->number >= 0 && pool_ensure(pool->heap) &&
        heap_insert(pool->heap, &block) == 0) {
        pool_count_added(thread, pool, &block, object);
    } else { /* there is no room */
        space_lost(&runtime.space, MEMTRACE_LOST_BLOCKS, 1);
        if (object->replaces != 0) {
            event_record_free(thread, object->replaces);
        }
    }
    event_leave(thread);
}

/* --- a whole pool ----------------------------------------------------------------------------- */

struct reset {
    struct thread *thread;
    const struct pool *pool;
    struct frame caller;
};

uint32_t pool_of_context(uint32_t context) {
    struct memtrace_node node = context_read(&runtime.tree, (struct context_id){context});
    return node.frame >= MEMTRACE_FRAME_POOL ? (uint32_t)(node.frame - MEMTRACE_FRAME_POOL) : 0;
}

static void pool_reset_one(void *argument, const struct heap_block *block) {
    const struct reset *reset = argument;
    if (pool_is_of_heap(reset->pool->heap) ||
        pool_of_context(block->context) == (uint32_t)reset->pool->number) {
        pool_remove(reset->thread, reset->pool->heap, block->start, 0, reset->caller);
    }
}

void pool_reset(struct thread *thread, const struct pool *pool, struct frame caller) {
    struct reset reset = {thread, pool, caller};
    if (pool->heap->root != NULL) {
        heap_visit(pool->heap, pool_reset_one, &reset);
    }
}
