/* SPDX-License-Identifier: MIT */
/* event.c: the parts of an event that most events do not need. See event.h. */
#include "runtime/entry/event.h"

COLD int event_forked_meanwhile(struct thread *thread, uintptr_t address) {
    thread->gate = GATE_NONE;
    thread = thread_get_for_free(address);
    if (thread != NULL) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        thread_done(thread);
    }
    return 0;
}

COLD void event_foreign_free(struct thread *thread, uint32_t owner, uint64_t size) {
    COUNTER_ADD(&thread->record->foreign_free_bytes, size);
    COUNTER_ADD(&thread->record->foreign_free_count, 1);
    if (!thread->is_late) {
        region_note_foreign_free(&runtime.region, thread->foreign, thread->id, owner, size);
    }
}

int event_take(struct thread *thread, const void *address, struct heap_block *block) {
    return heap_remove(&runtime.heap, (uintptr_t)address, thread->tick >> TICK_LOW_BITS != 0,
                       block);
}

void event_count_free(struct thread *thread, const struct heap_block *block, uintptr_t stack) {
    if (!event_enter(thread, stack)) {
        return;
    }
    event_tick(thread);
    event_count_freed(thread, block);
    event_leave(thread);
}

void event_put_back(const struct heap_block *block) {
    heap_insert(&runtime.heap, block);
}
