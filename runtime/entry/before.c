/* SPDX-License-Identifier: MIT */
/*
 * before.c: see before.h.
 *
 * All is counted as the C library does it: a block is its usable bytes and the word or two that
 * malloc keeps with it. So the heap is empty when the last old block is gone.
 */
#define _GNU_SOURCE
#include "runtime/entry/before.h"

#include "runtime/entry/event.h"

#include <malloc.h>

struct before before;

enum { WORD = sizeof(size_t), MAPPED = 2 /* of the size word in front of a block */ };

void before_prepare(void) {
    struct context_id root = {0};
    struct context_id context =
        context_child(&runtime.tree, root, MEMTRACE_FRAME_BEFORE, CONTEXT_CHARGED);
    before.is_followed = 0;
    before.context = context_is_cut(context) ? 0 : context.value;
}

/* As if it had been there from the start: the present and the maximum are more by it, alike. */
static void count_heap(uint64_t size) {
    struct memtrace_header *header = runtime.space.header;
    struct ledger_column *column = ledger_add_column(&runtime.ledger);
    uint32_t nobody = 0;
    if (column == NULL) {
        return;
    }
    ledger_inherit(&runtime.ledger, column, before.context, size, 1);
    STORE_RELAXED(&header->inherited_bytes, size);
    __atomic_fetch_add(&header->maximum_bytes, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->live_bytes, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&header->peak_epoch, &nobody, 1, 0, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED); /* no thread was there to say so */
    STORE_RELEASE(&before.is_followed, 1u);
}

/* Every arena's lock is taken in turn, as malloc itself does it, while its free blocks are counted.
 * Those in the caches of threads count as given out. */
void before_begin(void) {
    static struct mallinfo2 (*look)(void);
    struct mallinfo2 heap;
    uint32_t context = before.context;
    if (before.is_followed || context == 0 || !real.is_glibc ||
        LOAD_RELAXED(&runtime.gate) != GATE_OPEN) {
        return;
    }
    look = look != NULL ? look : (struct mallinfo2(*)(void))real_symbol("mallinfo2");
    if (look == NULL) {
        return;
    }
    heap = look();
    if (heap.uordblks + heap.hblkhd != 0) {
        count_heap(heap.uordblks + heap.hblkhd);
    }
}

void before_end(void) {
    if (LOAD_RELAXED(&before.is_followed)) {
        STORE_RELAXED(&before.is_followed, 0u);
        __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_BEFORE_UNSURE,
                          __ATOMIC_RELAXED);
    }
}

size_t before_size(const struct real *to, const void *pointer) {
    const size_t *block = pointer;
    if (LIKELY(!LOAD_RELAXED(&before.is_followed)) || to != &real || block == NULL) {
        return 0;
    }
    return real.malloc_usable_size((void *)pointer) + ((block[-1] & MAPPED) != 0 ? 2 * WORD : WORD);
}

COLD void before_freed(size_t size, uintptr_t slot) {
    struct ledger_event event = {.context = before.context, .size = size};
    struct thread *thread = thread_get_for_free(slot);
    struct memtrace_thread_record *record;
    if (thread == NULL || !event_enter(thread, slot)) {
        return;
    }
    record = thread->record;
    counter_add(&record->free_count, 1);
    counter_add(&record->free_bytes, size);
    peak_shrink(&thread->peak, runtime.space.header, event_live(thread), size);
    /* Whoever does not know what this path is finds as many allocations as frees. */
    ledger_alloc_many(&runtime.ledger, thread->column,
                      &(struct ledger_event){.context = before.context}, 1);
    ledger_free_part(&runtime.ledger, thread->column, &event, 1);
    event_leave(thread);
    thread_done(thread);
}
