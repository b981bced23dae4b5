/* SPDX-License-Identifier: MIT */
/*
 * event.h: the hot path: one allocation, one free. Called by every interposed function once it has
 * its thread. Order: an allocation is counted after the real allocator gave the block, a free
 * before it takes it back, so that the address cannot be in use twice.
 */
#ifndef RUNTIME_ENTRY_EVENT_H
#define RUNTIME_ENTRY_EVENT_H

#include "runtime/entry/runtime.h"
#include "runtime/entry/sampled_mode.h"

/* The caller of the function whose frame this is. (A struct frame is handed on only to what is
 * inlined: in a call it would travel through memory, and reading it back there would stall.) */
INLINE struct frame event_caller(uintptr_t frame) {
    const uintptr_t *record = machine_frame_record(frame);
    return (struct frame){.pc = machine_plain(record[1]),
                          .slot = (uintptr_t)&record[1],
                          .fp = record[0],
                          .sp = machine_frame_sp(frame)};
}

/* The caller of the function this stands in, whose frame pointer must be kept; and its place. */
#define EVENT_CALLER() event_caller(MACHINE_FRAME())
#define EVENT_PLACE()  (MACHINE_FRAME() + sizeof(uintptr_t))

/* What a gate holds while it is charged: its slot, with which event_caller_at() finds it again. */
INLINE uintptr_t event_place(struct frame caller) {
    return machine_marked_slot(caller.slot, caller.sp);
}

INLINE struct frame event_caller_at(uintptr_t place) {
    return event_caller(place - sizeof(uintptr_t));
}

/* The blocks' table, of which the compiler knows the granule. */
INLINE struct shadow_heap event_heap(void) {
    return (struct shadow_heap){.root = runtime.heap.root,
                                .granule_shift = MEMTRACE_FINE_SHIFT,
                                .numbered = runtime.heap.numbered};
}

/* No block that was counted, in whatever mode, begins at this address. */
INLINE int event_is_unknown(uintptr_t address) {
    struct shadow_heap heap = event_heap();
    return heap_is_empty_at(&heap, address) && !sampled_heap_may_hold(address);
}

/* The calling thread is in mode sampled, and what it frees was neither picked nor counted by
 * another mode: it is only to be handed on. */
INLINE int event_skips_free(const void *address) {
    return thread_self->gate == GATE_SAMPLED && !sampled_heap_may_hold(machine_untagged(address)) &&
           (LIKELY(!runtime.counted_exactly) || event_is_unknown(machine_untagged(address)));
}

/* A handler forked between the look at the gate and our entering: this is the child, whose struct
 * was wiped. Counts the event as lost. 0. */
int event_forked_meanwhile(struct thread *thread, uintptr_t address);

/* place: the caller's, which the gate holds until event_leave(). 1, or 0: the event cannot be
 * counted. */
INLINE int event_enter(struct thread *thread, uintptr_t place) {
    STORE_RELAXED(&thread->gate, place);
    SIGNAL_FENCE();
    return LIKELY(LOAD_RELAXED(&thread->record) != NULL) || event_forked_meanwhile(thread, place);
}

INLINE void event_leave(struct thread *thread) {
    /* Who finds the gate open (entry/quiescence.c) finds all of the event. */
    STORE_RELEASE(&thread->gate, LOAD_RELAXED(&runtime.gate));
}

/* The thread, NULL: there is none, enters an event that is none of the usual ones; and is done with
 * it. 1, or 0: it cannot be counted. (Where it could not enter, it is a wiped one, not a late one.)
 */
INLINE int event_begin(struct thread *thread, uintptr_t place) {
    return thread != NULL && event_enter(thread, place);
}

INLINE void event_end(struct thread *thread) {
    event_leave(thread);
    thread_done(thread);
}

INLINE void event_tick(struct thread *thread) {
    if (UNLIKELY(tick_is_due(thread))) {
        tick_slow(thread);
    }
}

/* The call path: cut where the tree had no room, {0} where it is not known. */
INLINE struct context_id event_path(struct thread *thread, struct frame caller) {
    struct context_id context = {0};
    if (LIKELY(runtime.settings.stacks != MEMTRACE_STACKS_NONE)) {
        context = walk_context(&runtime.world, thread->walker, caller);
    }
    return context;
}

/* What is charged where the path is cut, or not known: an ancestor, or one without a path. */
uint32_t event_ancestor(const struct thread *thread, struct context_id path);

/* What an allocation is charged to. One whose path is cut is counted as lost. */
INLINE uint32_t event_context(struct thread *thread, struct frame caller) {
    struct context_id path = event_path(thread, caller);
    return LIKELY((int32_t)path.value > 0) ? path.value : event_ancestor(thread, path);
}

/* The same for what is no heap block: `class_frame` (format.h: struct memtrace_node) is innermost.
 * 0: there is no room for the class. */
uint32_t event_class_context(struct thread *thread, struct frame caller, uint64_t class_frame);

/* How a block was allocated: MEMTRACE_ALLOC_ZEROED, log2 of the alignment asked for, and whether it
 * is another allocator's than malloc's. Only recordings tell. */
enum { EVENT_ALIGNMENT_SHIFT = 8, EVENT_FOREIGN = 1 << 16 };

INLINE uint32_t event_aligned(size_t alignment) {
    return alignment == 0 ? 0
                          : (63u - (uint32_t)__builtin_clzll(alignment)) << EVENT_ALIGNMENT_SHIFT;
}

/* The end of an event of a thread that is_special: what was counted is recorded, `replaces` is the
 * name of the block that realloc ended or 0, `owner` the thread that had allocated what was freed
 * at the tick `birth`, or 0: nobody is known. Then the thread leaves. */
void event_end_alloc(struct thread *thread, const void *address, uint64_t size, uint32_t context,
                     uint32_t how, uint64_t replaces);
void event_end_free(struct thread *thread, const void *address, uint32_t owner, uint32_t birth);

/* The cell of the newest allocation that was walked. */
INLINE void event_keep_cell(struct thread *thread, struct walk_last *last, uint32_t context) {
    last->cell = ledger_cell(thread->column, context);
    last->counted_pc = last->cell != NULL && last->context == context ? last->pc : 0;
}

/* A block was not noted, since there is no room, or since the block whose record is there was freed
 * without our seeing it: that one is counted as freed, and its free as lost. */
void event_insert_again(struct thread *thread, uintptr_t address, uint64_t size, uint32_t context);
/* Where a block of `size` bytes begins there is another's number in the recording: a small one's
 * where this is large, or the other way round, whose record is in the other table. */
void event_end_numbered(struct thread *thread, uintptr_t address, uint64_t size);

INLINE struct heap_block event_new_block(const struct thread *thread, uintptr_t address,
                                         uint64_t size, uint32_t context) {
    return (struct heap_block){.size = size,
                               .context = context,
                               .thread = thread->id,
                               .birth_tick = thread->tick,
                               .start = address};
}

/* Of the record that the thread has now: in a child that a handler forked inside this event it is
 * another than the one that the event adds to. */
INLINE int64_t event_live(struct thread *thread) {
    return peak_live(LOAD_RELAXED(&thread->counts));
}

INLINE void event_count_alloc(struct thread *thread, const void *address, uint64_t size,
                              uint32_t context) {
    struct memtrace_counts *counts = thread->counts;
    struct walk_last *last = &thread->walker->last;
    struct shadow_heap heap = event_heap();
    struct ledger_event event = {.context = context, .size = size};
    struct heap_block block = event_new_block(thread, machine_untagged(address), size, context);
    if (UNLIKELY(heap_insert(&heap, &block) != 0)) {
        event_insert_again(thread, machine_untagged(address), size, context);
    }
    ledger_alloc(&runtime.ledger, thread->column, &event);
    counter_add(&counts->alloc_count, 1);
    counter_add(&counts->alloc_bytes, size);
    peak_grow(&thread->peak, runtime.space.header, event_live(thread));
    if (last->word != NULL &&
        last->counted_pc != last->pc) { /* for fast.c: the next may be like it */
        event_keep_cell(thread, last, context);
    }
}

/* The block at `address` was allocated. The thread's gate is open; it is done with the event. */
INLINE void event_alloc(struct thread *thread, const void *address, uint64_t size,
                        struct frame caller, uint32_t how, uint64_t replaces) {
    uint32_t context;
    if (UNLIKELY(thread->gate == GATE_SAMPLED)) {
        sampled_mode_alloc(thread, address, size, caller);
        return;
    }
    if (!event_enter(thread, event_place(caller))) {
        return;
    }
    event_tick(thread);
    context = event_context(thread, caller);
    event_count_alloc(thread, address, size, context);
    thread->last_block = machine_untagged(address);
    if (UNLIKELY(thread->is_special)) {
        event_end_alloc(thread, address, size, context, how, replaces);
    } else {
        event_leave(thread);
    }
}

/* `count` blocks of thread `owner`, `size` bytes in all. */
void event_foreign_free(struct thread *thread, uint32_t owner, uint32_t context, uint64_t size,
                        uint64_t count);

INLINE void event_count_freed(struct thread *thread, const struct heap_block *block) {
    struct memtrace_counts *counts = thread->counts;
    struct ledger_event event = {.context = block->context, .size = block->size};
    int own = block->thread == thread->id;
    event.lifetime_bucket = ledger_lifetime_bucket(heap_age(block->birth_tick, thread->tick));
    event.temporary = own && thread->last_block == block->start;
    if (UNLIKELY(!own)) {
        event_foreign_free(thread, block->thread, block->context, block->size, 1);
    }
    counter_add(&counts->free_count, 1);
    counter_add(&counts->free_bytes, block->size);
    peak_shrink(&thread->peak, runtime.space.header, event_live(thread), block->size);
    ledger_free(&runtime.ledger, thread->column, &event);
}

/* The block at `address` is about to be freed. The thread is done with the event. 1, or 0: the
 * block is not known. */
INLINE int event_free(struct thread *thread, const void *address, uintptr_t slot) {
    struct shadow_heap heap;
    struct heap_block block = {0};
    uint32_t owner = 0;
    int is_known = 1;
    if (!event_enter(thread, slot)) {
        return 1;
    }
    event_tick(thread);
    heap = event_heap();
    if (LIKELY(heap_remove(&heap, machine_untagged(address), thread->tick, &block))) {
        owner = block.thread;
        event_count_freed(thread, &block);
    } else if (UNLIKELY(sampled_heap_may_hold(machine_untagged(address)))) {
        sampled_mode_free(thread, machine_untagged(address));
    } else {
        is_known = 0;
    }
    if (UNLIKELY(thread->is_special)) {
        event_end_free(thread, address, owner, block.birth_tick);
    } else {
        event_leave(thread);
    }
    return is_known;
}

/* For realloc, which frees and allocates or fails: takes the block out, then counts its end or puts
 * it back. */
struct event_taken {
    struct heap_block block;
    struct memtrace_sampled_block picked; /* instead of `block` */
    uint64_t name;                        /* in the recording; 0: it is not in it */
    int known;                            /* the block was counted */
    int is_picked;                        /* in mode sampled */
};
void event_take(struct thread *thread, const void *address, struct event_taken *taken);
/* replaced: another takes its place, whose allocation tells of its end. */
void event_count_taken(struct thread *thread, const struct event_taken *taken, struct frame caller,
                       int replaced);
void event_put_back(const struct event_taken *taken);
/* For a realloc that cannot be counted (in a handler that interrupted the runtime): the block is
 * taken out to be put back where it is then, as what it was. */
void event_take_uncounted(const void *address, struct event_taken *taken);
void event_put_elsewhere(struct event_taken *taken, const void *address);

/* --- recordings: each thread that comes here has a stream, and has entered the event ------------
 */

/* The block, which `heap` knows, was allocated. */
void event_record_alloc(struct thread *thread, const struct shadow_heap *heap,
                        const struct recorder_alloc *alloc);
/* The same of a pool's object, where it is one of those that are wanted: as for the heap's blocks,
 * by chance, size and module. If not, what it replaces is freed. */
void event_record_pool(struct thread *thread, const struct shadow_heap *heap,
                       const struct recorder_alloc *alloc);
/* The name of a block that was just taken out, by which it is recorded as freed; 0: it is not in
 * the recording. birth: the tick. */
uint64_t event_take_name(const struct shadow_heap *heap, uintptr_t address, uint32_t owner,
                         uint32_t birth);
void event_record_free(struct thread *thread, uint64_t name);
/* Whether the event is a signal handler's: the way outwards leads over an instruction that was
 * interrupted. */
int event_is_in_handler(struct thread *thread);
/* No chunk was free. 1: now there is one. */
int event_wait_for_room(struct thread *thread);
void event_record_map(struct thread *thread, const struct recorder_map *map);

/* Which modules are wanted is decided anew: their numbers are others now. */
void event_forget_modules(void);

/* Puts a mark into the recording, if there is one. From outside of events. */
void event_mark(enum memtrace_mark what, uint64_t id, const char *text, size_t size,
                struct frame caller);

#endif
