/* SPDX-License-Identifier: MIT */
/* event.c: the parts of an event that most events do not need. See event.h. Called by its inline
 * functions, by malloc.c and sampled_mode.c. */
#include "runtime/entry/event.h"

#include "runtime/entry/child.h"

COLD int event_forked_meanwhile(struct thread *thread, uintptr_t address) {
    thread->gate = GATE_NONE;
    thread = thread_get_for_free(address);
    if (thread != NULL) {
        space_lost(&runtime.space, MEMTRACE_LOST_EVENTS, 1);
        thread_done(thread);
    }
    return 0;
}

COLD void event_foreign_free(struct thread *thread, uint32_t owner, uint32_t context, uint64_t size,
                             uint64_t count) {
    if (child_inherited_freed(owner, context, size, count)) {
        return;
    }
    counter_add(&thread->record->foreign_free_bytes, size);
    counter_add(&thread->record->foreign_free_count, count);
    if (!thread->is_late) {
        region_note_foreign_free(&runtime.region, thread->foreign, thread->record, owner, size,
                                 count);
    }
}

/* --- frees that were missed ------------------------------------------------------------------- */

/* In the recording, too, the block ends here. */
static void event_count_missed(struct thread *thread, const struct heap_block *block) {
    space_lost(&runtime.space, MEMTRACE_LOST_FREES, 1);
    if (thread->stream != NULL) {
        uint64_t name =
            event_take_name(&runtime.heap, block->start, block->thread, block->birth_tick);
        if (name != 0) {
            event_record_free(thread, name);
        }
    }
    event_count_freed(thread, block);
}

COLD void event_insert_again(struct thread *thread, uintptr_t address, uint64_t size,
                             uint32_t context) {
    struct heap_block block = event_new_block(thread, address, size, context);
    struct heap_block stale;
    if (heap_remove_stale(&runtime.heap, address, heap_is_small(size), thread->tick, &stale)) {
        event_count_missed(thread, &stale);
    }
    if (heap_insert(&runtime.heap, &block) != 0) {
        space_lost(&runtime.space, MEMTRACE_LOST_BLOCKS, 1);
    }
}

COLD void event_end_numbered(struct thread *thread, uintptr_t address, uint64_t size) {
    struct heap_block stale;
    if (heap_starts_in_granule(&runtime.heap, address, !heap_is_small(size)) &&
        heap_remove_stale(&runtime.heap, address, !heap_is_small(size), thread->tick, &stale)) {
        event_count_missed(thread, &stale);
    }
}

/* --- paths for which there was no room -------------------------------------------------------- */

static void event_count_cut(int is_cut) {
    if (is_cut) {
        space_lost(&runtime.space, MEMTRACE_LOST_CONTEXTS, 1);
    }
}

static struct context_id event_known_part(struct context_id path) {
    uint32_t id = context_kept(path).value;
    return (struct context_id){id != 0 ? id : runtime.unknown_context};
}

/* Where there was no room for a path there may be none for a cell of its ancestor either. */
COLD uint32_t event_ancestor(const struct thread *thread, struct context_id path) {
    struct context_id at = event_known_part(path);
    event_count_cut(context_is_cut(path));
    while (at.value != 0 && !ledger_has_room(&runtime.ledger, thread->column, at.value)) {
        at.value = context_read(&runtime.tree, at).parent;
    }
    return at.value != 0 ? at.value : runtime.unknown_context;
}

/* Without the class a mapping would be taken for a heap block. So where the class cannot be kept
 * either it stands alone, under the root: for mappings that was made at the start. */
uint32_t event_class_context(struct thread *thread, struct frame caller, uint64_t class_frame) {
    struct context_id path = event_path(thread, caller);
    struct context_id context =
        context_cached_child(&runtime.tree, &thread->walker->cache, event_known_part(path),
                             class_frame, CONTEXT_CHARGED);
    event_count_cut(context_is_cut(path) || context_is_cut(context));
    if (LIKELY(!context_is_cut(context))) {
        return context.value;
    }
    return context_kept(
               context_child(&runtime.tree, (struct context_id){0}, class_frame, CONTEXT_CHARGED))
        .value;
}

/* --- realloc ---------------------------------------------------------------------------------- */

/* Whether mode sampled had picked it. */
static int event_take_picked(uintptr_t address, struct event_taken *taken) {
    taken->name = 0;
    taken->is_picked =
        sampled_heap_may_hold(address) && sampled_heap_remove(address, &taken->picked);
    taken->known = taken->is_picked;
    taken->block.start = address;
    return taken->is_picked;
}

void event_take(struct thread *thread, const void *address, struct event_taken *taken) {
    struct heap_block *block = &taken->block;
    if (event_take_picked(machine_untagged(address), taken)) {
        return;
    }
    taken->known = heap_remove(&runtime.heap, machine_untagged(address),
                               tick_is_due(thread) ? tick_now() : thread->tick, block);
    if (taken->known && thread->stream != NULL) {
        taken->name = event_take_name(&runtime.heap, machine_untagged(address), block->thread,
                                      block->birth_tick);
    }
}

void event_count_taken(struct thread *thread, const struct event_taken *taken, struct frame caller,
                       int replaced) {
    if (!taken->known || !event_enter(thread, event_place(caller))) {
        return;
    }
    event_tick(thread);
    if (taken->is_picked) {
        sampled_mode_count_freed(thread, taken->block.start, &taken->picked);
    } else {
        event_count_freed(thread, &taken->block);
    }
    if (taken->name != 0 && !replaced) {
        event_record_free(thread, taken->name);
    }
    event_leave(thread);
    if (!replaced) {
        child_note();
    }
}

void event_put_back(const struct event_taken *taken) {
    if (taken->is_picked) {
        sampled_heap_insert(taken->block.start, &taken->picked);
    } else if (taken->known) {
        if (taken->name != 0) { /* before: no block without a number is seen */
            heap_set_number(&runtime.heap, taken->block.start, recorder_low_number(taken->name));
        }
        heap_insert(&runtime.heap, &taken->block);
        if (taken->name != 0) {
            heap_set_number(&runtime.heap, taken->block.start, recorder_low_number(taken->name));
        }
    }
}

void event_take_uncounted(const void *address, struct event_taken *taken) {
    uintptr_t start = machine_untagged(address);
    if (event_take_picked(start, taken)) {
        return;
    }
    taken->known =
        runtime.heap.root != NULL && heap_remove(&runtime.heap, start, tick_now(), &taken->block);
    if (taken->known && runtime.heap.numbered) { /* who allocated it is in the record */
        taken->name = recorder_name(0, heap_take_number(&runtime.heap, start));
    }
}

void event_put_elsewhere(struct event_taken *taken, const void *address) {
    taken->block.start = machine_untagged(address);
    event_put_back(taken);
}
