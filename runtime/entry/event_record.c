/* SPDX-License-Identifier: MIT */
/* event_record.c: the end of an event that is recorded. See event.h. */
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"

/* --- waiting for the collector ---------------------------------------------------------------- */

/* Whether a signal handler runs: the way outwards leads over an instruction that was interrupted.
 */
static int is_in_handler(struct thread *thread, struct frame caller) {
    struct context_id at = walk_context(&runtime.world, thread->walker, caller);
    while (at.value != 0) {
        const struct memtrace_node *node = context_node(&runtime.tree, at);
        if ((node->frame & MEMTRACE_FRAME_EXACT) != 0) {
            return 1;
        }
        at.value = node->parent;
    }
    return 0;
}

/* No chunk was free. 1: now there is one. */
static COLD int wait_for_room(struct thread *thread, struct frame caller) {
    return recorder_may_wait(&runtime.recorder) && !is_in_handler(thread, caller) &&
           recorder_wait(thread->stream);
}

/* --- blocks ----------------------------------------------------------------------------------- */

void event_record_alloc(struct thread *thread, struct shadow_heap *heap,
                        const struct recorder_alloc *alloc, struct frame caller) {
    struct recorder_stream *stream = thread->stream;
    uint64_t number = recorder_alloc(stream, alloc);
    if (UNLIKELY(number == 0) && wait_for_room(thread, caller)) {
        number = recorder_alloc(stream, alloc);
    }
    heap_set_number(heap, alloc->address, (uint32_t)number);
    if (UNLIKELY(number == 0)) {
        recorder_lost(stream, 1, alloc->replaces != 0);
    }
}

void event_record_free(struct thread *thread, uint64_t name, struct frame caller) {
    struct recorder_stream *stream = thread->stream;
    uint32_t context = 0;
    if (UNLIKELY(runtime.recorder.recording->flags & MEMTRACE_RECORDING_FREE_STACKS)) {
        context = event_context(thread, caller);
    }
    if (UNLIKELY(!recorder_free(stream, name, context)) &&
        !(wait_for_room(thread, caller) && recorder_free(stream, name, context))) {
        recorder_lost(stream, 0, 1);
    }
}

uint64_t event_take_name(struct shadow_heap *heap, uintptr_t address, uint32_t owner,
                         uint32_t birth) {
    uint32_t low = heap_take_number(heap, address);
    return low == 0 ? 0
                    : recorder_name(owner, recorder_number(&runtime.recorder, owner, low, birth));
}

/* --- the heap's ------------------------------------------------------------------------------- */

/* glibc keeps a block's size and kind in the word before it (malloc/malloc.c: struct malloc_chunk),
 * and gives out all that is behind, its neighbour's first word included unless it is mapped. */
enum { CHUNK_MAPPED = 2, CHUNK_ARENA = 4, CHUNK_FLAGS = 7 };

static void look_at_block(struct recorder_alloc *alloc, uint32_t how) {
    const void *block = (const void *)alloc->address;
    uint64_t usable = alloc->size;
    if ((how & EVENT_FOREIGN) != 0) {
        return;
    }
    if (LIKELY(real.is_glibc)) {
        uint64_t word = ((const uint64_t *)block)[-1];
        uint64_t overhead = (word & CHUNK_MAPPED) != 0 ? 16 : 8;
        usable = (word & ~(uint64_t)CHUNK_FLAGS) - overhead;
        alloc->flags |= (word & CHUNK_MAPPED) != 0  ? MEMTRACE_ALLOC_MAPPED
                        : (word & CHUNK_ARENA) != 0 ? MEMTRACE_ALLOC_ARENA
                                                    : 0;
    } else if (real.malloc_usable_size != NULL) {
        usable = real.malloc_usable_size((void *)alloc->address);
    }
    usable = usable > alloc->size ? usable - alloc->size : 0;
    alloc->slack = usable < MEMTRACE_SLACK_MOST ? (uint32_t)usable : MEMTRACE_SLACK_MOST;
}

/* The caller whose return address stands in this slot. */
static struct frame caller_at(uintptr_t slot) {
    return event_caller((const void *)(slot - sizeof(uintptr_t)));
}

void event_end_alloc(struct thread *thread, const void *address, uint64_t size, uint32_t context,
                     uint32_t how, uint64_t replaces) {
    if (LIKELY(thread->stream != NULL)) {
        struct recorder_alloc alloc = {.address = (uintptr_t)address,
                                       .size = size,
                                       .replaces = replaces,
                                       .context = context,
                                       .flags = how & MEMTRACE_ALLOC_ZEROED,
                                       .alignment = (how >> EVENT_ALIGNMENT_SHIFT) & 63};
        look_at_block(&alloc, how);
        event_record_alloc(thread, &runtime.heap, &alloc, caller_at(thread->gate));
    }
    event_leave(thread);
    thread_done(thread);
}

void event_end_free(struct thread *thread, const void *address, uint32_t owner, uint32_t age) {
    if (LIKELY(thread->stream != NULL && owner != 0)) {
        uint64_t name =
            event_take_name(&runtime.heap, (uintptr_t)address, owner, thread->tick - age);
        if (LIKELY(name != 0)) {
            event_record_free(thread, name, event_caller((const void *)thread->gate));
        }
    }
    event_leave(thread);
    thread_done(thread);
}

/* --- what is no block ------------------------------------------------------------------------- */

void event_record_map(struct thread *thread, const struct recorder_map *map, struct frame caller) {
    if (!recorder_map(thread->stream, map) &&
        !(wait_for_room(thread, caller) && recorder_map(thread->stream, map))) {
        space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
    }
}

void event_mark(enum memtrace_mark what, uint64_t id, const char *text, size_t size,
                struct frame caller) {
    struct thread *thread = thread_get_for_free(caller.slot);
    if (thread == NULL) {
        return;
    }
    if (thread->stream != NULL && event_enter(thread, caller.slot)) {
        event_tick(thread);
        if (!recorder_mark(thread->stream, what, id, text, size) &&
            !(wait_for_room(thread, caller) &&
              recorder_mark(thread->stream, what, id, text, size))) {
            space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
        }
        event_leave(thread);
    }
    thread_done(thread);
}
