/* SPDX-License-Identifier: MIT */
/* sampled_mode.c: what is done for the few blocks that are picked. See sampled_mode.h. */
#include "runtime/entry/sampled_mode.h"

#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/switch.h"
#include "runtime/heap/estimates.h"

/* A thread looks up from counting down at least so often: to hear of another mode. */
enum { CREDIT_MOST = 128 << 10 };

/* How far the next point is: the same after an event that took no place on the line of bytes. */
static int64_t sampled_position(const struct thread *thread) {
    return thread->sampling.until + (int64_t)thread->credit;
}

/* The countdown goes on behind the next `length` bytes. 1: a point lies in them. */
static int sampled_pass_bytes(struct thread *thread, uint64_t length, uint64_t mean) {
    struct sampling *sampling = &thread->sampling;
    uint64_t picked;
    uint64_t credit;
    if (sampling->random == 0) {
        sampling_seed(sampling, sys_clock_ns(CLOCK_MONOTONIC) ^ (uintptr_t)thread ^
                                    (uint64_t)thread->id << 48);
    }
    sampling->until += (int64_t)thread->credit;
    picked = sampling_take(sampling, length, mean);
    credit = (uint64_t)sampling->until - 1;
    thread->credit = credit < CREDIT_MOST ? credit : CREDIT_MOST;
    sampling->until -= (int64_t)thread->credit;
    return picked != 0;
}

/* --- counting --------------------------------------------------------------------------------- */

/* The maximum is an estimate whose error is that of what was live then. */
static void sampled_note_variance(double change) {
    struct memtrace_header *header = runtime.space.header;
    estimates_sum(&header->live_variance, change);
    if ((LOAD_RELAXED(&header->peak_epoch) & 1) != 0) {
        double live;
        __atomic_load(&header->live_variance, &live, __ATOMIC_RELAXED);
        __atomic_store(&header->maximum_variance, &live, __ATOMIC_RELAXED);
    }
}

COLD void sampled_mode_count_freed(struct thread *thread, uintptr_t address,
                                   const struct memtrace_sampled_block *block) {
    struct ledger_event event = {.context = block->context, .size = block->bytes};
    double variance = estimates_variance_of(block->size, block->bytes);
    int own = block->thread == thread->id;
    event.lifetime_bucket = ledger_lifetime_bucket(heap_age(block->birth_tick, thread->tick));
    event.temporary =
        own && thread->last_block == address && sampled_position(thread) == thread->last_position;
    if (!own) {
        event_foreign_free(thread, block->thread, block->context, block->bytes, block->count);
    }
    counter_add(&thread->counts->free_count, block->count);
    counter_add(&thread->counts->free_bytes, block->bytes);
    peak_shrink(&thread->peak, runtime.space.header, event_live(thread), block->bytes);
    ledger_free_many(&runtime.ledger, thread->column, &event, block->count);
    estimates_free(&runtime.space, block->context, variance);
    sampled_note_variance(-variance);
}

COLD void sampled_mode_free(struct thread *thread, uintptr_t address) {
    struct memtrace_sampled_block block;
    if (sampled_heap_remove(address, &block)) {
        event_tick(thread);
        sampled_mode_count_freed(thread, address, &block);
    }
}

static void sampled_count_picked(struct thread *thread, uintptr_t address, uint64_t size,
                                 struct frame caller, double probability) {
    struct sampling *sampling = &thread->sampling;
    struct memtrace_sampled_block block = {.size = size,
                                           .bytes =
                                               sampling_round(sampling, (double)size / probability),
                                           .count = sampling_round(sampling, 1 / probability),
                                           .thread = thread->id,
                                           .context = event_context(thread, caller),
                                           .birth_tick = thread->tick};
    struct ledger_event event = {.context = block.context, .size = block.bytes};
    struct variance variance = estimates_variance(size, block.bytes, probability);
    sampled_mode_free(thread, address); /* whose free was missed */
    if (sampled_heap_insert(address, &block) != 0) {
        space_lost(&runtime.space, MEMTRACE_LOST_BLOCKS, 1);
    }
    ledger_alloc_many(&runtime.ledger, thread->column, &event, block.count);
    estimates_add(&runtime.space, block.context, variance);
    counter_add(&thread->counts->alloc_count, block.count);
    counter_add(&thread->counts->alloc_bytes, block.bytes);
    peak_grow(&thread->peak, runtime.space.header, event_live(thread));
    sampled_note_variance(variance.bytes);
    thread->last_block = address;
    thread->last_position = sampled_position(thread);
}

COLD void sampled_mode_alloc(struct thread *thread, const void *address, uint64_t size,
                             struct frame caller) {
    uint64_t mean = LOAD_RELAXED(&runtime.sample_bytes);
    uint64_t length = size != UINT64_MAX ? size + 1 : size;
    if (sampled_mode_take_credit(thread, size)) {
        thread_done(thread);
        return;
    }
    if (!event_enter(thread, event_place(caller))) {
        return;
    }
    switch_poll();
    if (mean != 0 && sampled_pass_bytes(thread, length, mean)) {
        event_tick(thread);
        sampled_count_picked(thread, machine_untagged(address), size, caller,
                             sampling_probability(length, mean));
    }
    event_leave(thread);
    child_note();
    thread_done(thread);
}
