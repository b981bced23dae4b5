/* SPDX-License-Identifier: MIT */
/*
 * fast.c: malloc and free where nothing is out of the ordinary: a small block, allocated again from
 * the same place with the same stack, or freed by the thread that allocated it. Any test that fails
 * ends in a jump to malloc.c, which does the whole event as if it had been called itself: a jump
 * leaves the caller's return slot and frame pointer where they were. So this file is built without
 * frame pointers, and always optimised.
 *
 * Nothing is stored before all tests are made, and then each number changes by one instruction. A
 * signal handler may come between any two, with whole events of its own: docs/architecture.md tells
 * why that is right.
 */
#include "runtime/base/machine.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/tick.h"

#include <stdlib.h>

MACHINE_RESERVE_FP();

/* What is read of the calling thread. A forked child finds the struct wiped: so the pointers are
 * read before the gate, which says that they are there. */
struct hands {
    struct thread *thread;
    const struct walk_last *last;
    struct ledger_column *column;
    struct memtrace_thread_record *record;
};

/* 1, or 0: not the ordinary. */
INLINE int take_hands(struct hands *hands) {
    struct thread *thread = thread_self;
    hands->thread = thread;
    hands->last = &thread->walker->last;
    hands->column = thread->column;
    hands->record = thread->record;
    SIGNAL_FENCE();
    return LIKELY(thread->gate == GATE_OPEN) && LIKELY(!thread->is_special) &&
           LIKELY(!tick_is_due(thread));
}

/* Where the block's record lies. 1, or 0: there was no block near it yet. */
INLINE int find_record(const void *block, uint8_t **leaf, uint64_t **record) {
    struct shadow_heap heap = event_heap();
    *leaf = heap.root[(uintptr_t)block >> MEMTRACE_SPAN_SHIFT];
    *record = heap_fine(&heap, *leaf, (uintptr_t)block);
    return LIKELY(*leaf != NULL);
}

/* What the record holds besides context and size, if the calling thread allocates it now. */
INLINE uint64_t stamp_of(const struct hands *hands, const void *block) {
    return hands->thread->stamp +
           (((uint64_t)(uintptr_t)block >> 3 & 3) << MEMTRACE_BLOCK_OFFSET_SHIFT);
}

INLINE int is_at_epoch(const struct memtrace_cell *cell) {
    return LIKELY(runtime.space.header->peak_epoch == cell->peak_epoch);
}

/* --- malloc ----------------------------------------------------------------------------------- */

/* The newest allocation that was walked, if this one is from the same place. Its slot is compared
 * last: an event in a handler leaves another there, since ours is in use; so if it is ours, all was
 * read together. The word is read when it is known to be on this stack. */
INLINE int is_repeated(const struct walk_last *last, uintptr_t slot, uintptr_t fp,
                       struct walk_last *read) {
    read->word = last->word;
    read->parent = last->parent;
    read->context = last->context;
    read->cell = last->cell;
    if (UNLIKELY(last->pc != stack_load(slot) || last->fp != fp)) {
        return 0;
    }
    SIGNAL_FENCE();
    return LIKELY(last->slot == slot) && LIKELY(read->cell != NULL) &&
           LIKELY(*read->word == read->parent);
}

PUBLIC void *malloc(size_t size) {
    uintptr_t slot = (uintptr_t)__builtin_dwarf_cfa() - sizeof(uintptr_t);
    struct walk_last last;
    struct hands hands;
    uint64_t *record;
    uint8_t *leaf;
    void *block;
    if (UNLIKELY(size >= real.small_limit)) {
        return malloc_slow(size);
    }
    block = real.malloc(size);
    if (!take_hands(&hands) || !find_record(block, &leaf, &record) ||
        !is_repeated(hands.last, slot, MACHINE_CALLER_FP(), &last) || !is_at_epoch(last.cell) ||
        UNLIKELY(*record != 0)) { /* of a block whose free was missed */
        return malloc_count_slow(block, size);
    }
    counter_add(&last.cell->alloc_bytes, size);
    counter_add(&last.cell->alloc_count, 1);
    counter_add(&hands.record->alloc_count, 1);
    if (UNLIKELY(heap_has_high_births(hands.thread->tick))) {
        struct shadow_heap heap = event_heap();
        *heap_birth_high(&heap, leaf, (uintptr_t)block) = hands.thread->tick >> TICK_LOW_BITS;
    }
    hands.thread->last_block = (uintptr_t)block;
    STORE_RELAXED(record,
                  (last.context | size << MEMTRACE_BLOCK_SIZE_SHIFT) + stamp_of(&hands, block));
    counter_add(&hands.record->alloc_bytes, size);
    if (UNLIKELY(peak_is_passed(&hands.thread->peak, peak_live(hands.record)))) {
        return malloc_raise_peak_slow(block);
    }
    return block;
}

/* --- free ------------------------------------------------------------------------------------- */

/* Whether the calling thread allocated the block, and it starts here. */
INLINE int is_own(const struct hands *hands, const void *block, uint64_t record) {
    enum { ABOVE = 64 - MEMTRACE_BLOCK_BIRTH_SHIFT };
    return LIKELY(
        (record ^ stamp_of(hands, block)) << ABOVE >> (ABOVE + MEMTRACE_BLOCK_THREAD_SHIFT) == 0);
}

/* The age is a plain difference: a thread's own blocks were not born after what it takes for now.
 */
INLINE uint32_t *bucket_of(const struct hands *hands, const void *block, uint8_t *leaf,
                           uint64_t record, const struct memtrace_cell *cell) {
    uint32_t birth = (uint32_t)(record >> MEMTRACE_BLOCK_BIRTH_SHIFT);
    if (UNLIKELY(heap_has_high_births(hands->thread->tick))) {
        struct shadow_heap heap = event_heap();
        birth |= (uint32_t)*heap_birth_high(&heap, leaf, (uintptr_t)block) << TICK_LOW_BITS;
    }
    return ledger_bucket(&runtime.ledger, cell,
                         ledger_lifetime_bucket(hands->thread->tick - birth));
}

PUBLIC void free(void *block) {
    struct memtrace_cell *cell;
    struct hands hands;
    uint32_t *bucket;
    uint64_t *place;
    uint64_t record;
    uint64_t size;
    uint8_t *leaf;
    if (UNLIKELY((uintptr_t)block >> 47 != 0) || !take_hands(&hands) ||
        !find_record(block, &leaf, &place)) {
        return free_slow(block);
    }
    record = *place;
    cell = ledger_cell(hands.column, record & ((1u << MEMTRACE_CONTEXT_BITS) - 1));
    if (!is_own(&hands, block, record) || UNLIKELY(cell == NULL) || !is_at_epoch(cell)) {
        return free_slow(block);
    }
    bucket = bucket_of(&hands, block, leaf, record, cell);
    size = record >> MEMTRACE_BLOCK_SIZE_SHIFT & (FINE_SIZE_LIMIT - 1);
    if (UNLIKELY(bucket == NULL)) {
        return free_slow(block);
    }
    counter_add(&hands.record->free_bytes, size);
    if (UNLIKELY(peak_is_left(&hands.thread->peak, peak_live(hands.record)))) {
        return free_from_peak_slow(block, size);
    }
    STORE_RELAXED(place, 0);
    counter_add(&cell->free_bytes, size);
    counter_add(&cell->free_count, 1);
    if (hands.thread->last_block == (uintptr_t)block) {
        counter_add(&cell->temporary_count, 1);
    }
    counter_increment(bucket);
    counter_add(&hands.record->free_count, 1);
    real.free(block);
}
