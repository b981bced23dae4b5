/* SPDX-License-Identifier: MIT */
/*
 * preexisting.c: see preexisting.h, which says who calls it.
 *
 * All is counted as the C library does it: a block is its usable bytes and the word or two that
 * malloc keeps with it. So the heap is empty when the last old block is gone.
 */
#define _GNU_SOURCE
#include "runtime/entry/preexisting.h"

#include "runtime/entry/event.h"

struct preexisting preexisting;

enum { WORD = sizeof(size_t), MAPPED = 2 /* of the size word in front of a block */ };

/* --- recordings ------------------------------------------------------------------------------- */

/* Of a part of the allocations, by size or by module, it is no part. */
static int preexisting_is_recorded(void) {
    const struct memtrace_recording *recording = runtime.recorder.recording;
    return recorder_is_on(&runtime.recorder) && recording != NULL && recording->size_most == 0 &&
           (recording->flags & MEMTRACE_RECORDING_MODULES) == 0;
}

/* At that time, which is before that of any free of it. 0: there is no room. */
static int preexisting_tell(struct recorder_stream *stream, uint64_t time_ns, uint64_t bytes) {
    enum { WORDS = 2 + RECORDER_DUE_WORDS };
    uint64_t now_ns;
    int done;
    if (!recorder_has_room(stream, WORDS) &&
        !(recorder_may_wait(stream->recorder) && recorder_wait(stream))) {
        space_lost(&runtime.space, MEMTRACE_LOST_RECORDS, 1);
        return 0;
    }
    now_ns = stream->now_ns;
    recorder_set_time(stream, time_ns, stream->tick);
    done = recorder_before(stream, MEMTRACE_MARK_BEFORE, preexisting.context, bytes);
    recorder_set_time(stream, now_ns, stream->tick);
    return done;
}

void preexisting_record(struct recorder_stream *stream) {
    uint64_t left;
    if (!LOAD_RELAXED(&preexisting.is_followed) || !preexisting_is_recorded()) {
        return;
    }
    left = __atomic_fetch_or(&preexisting.left, PREEXISTING_RECORDED, __ATOMIC_RELAXED);
    if (!preexisting_tell(stream, runtime.recorder.recording->begun_ns, left)) {
        preexisting_forget_recording();
    }
}

void preexisting_forget_recording(void) {
    __atomic_fetch_and(&preexisting.left, ~PREEXISTING_RECORDED, __ATOMIC_RELAXED);
}

/* --- coming and going ------------------------------------------------------------------------- */

void preexisting_prepare(void) {
    struct context_id root = {0};
    struct context_id context =
        context_child(&runtime.tree, root, MEMTRACE_FRAME_BEFORE, CONTEXT_CHARGED);
    preexisting.is_followed = 0;
    preexisting.context = context_is_cut(context) ? 0 : context.value;
}

int preexisting_is_expected(void) {
    return !preexisting.is_followed && preexisting.context != 0 && real.is_glibc &&
           LOAD_RELAXED(&runtime.gate) == GATE_OPEN;
}

/* As if it had been there from the start: the present and the maximum are more by it, alike. */
void preexisting_begin(uint64_t size) {
    struct memtrace_header *header = runtime.space.header;
    struct ledger_column *column = size != 0 ? ledger_add_column(&runtime.ledger) : NULL;
    uint32_t nobody = 0;
    if (column == NULL) {
        return;
    }
    ledger_inherit(&runtime.ledger, column, preexisting.context, size, 1);
    STORE_RELAXED(&header->inherited_bytes, size);
    __atomic_fetch_add(&header->maximum_bytes, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->live_bytes, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&header->peak_epoch, &nobody, 1, 0, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED); /* no thread was there to say so */
    STORE_RELAXED(&preexisting.left, size);
    STORE_RELEASE(&preexisting.is_followed, 1u);
    if (preexisting_is_recorded()) { /* this thread has no stream: it is not the program's */
        struct recorder_stream stream;
        recorder_join(&runtime.recorder, &stream, MEMTRACE_THREAD_OTHERS);
        preexisting_record(&stream);
        recorder_leave(&stream);
    }
}

void preexisting_end(void) {
    if (LOAD_RELAXED(&preexisting.is_followed)) {
        STORE_RELAXED(&preexisting.is_followed, 0u);
        __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_BEFORE_UNSURE,
                          __ATOMIC_RELAXED);
    }
}

size_t preexisting_size(const struct real *to, const void *pointer) {
    const size_t *block = pointer;
    if (LIKELY(!LOAD_RELAXED(&preexisting.is_followed)) || to != &real || block == NULL) {
        return 0;
    }
    return real.malloc_usable_size((void *)pointer) + ((block[-1] & MAPPED) != 0 ? 2 * WORD : WORD);
}

/* Takes it off, at most what is left. *is_told: a recording is told of it. */
static uint64_t preexisting_take_off(uint64_t size, int *is_told) {
    uint64_t left = LOAD_RELAXED(&preexisting.left);
    uint64_t taken;
    do {
        uint64_t most = left & ~PREEXISTING_RECORDED;
        taken = size < most ? size : most;
    } while (!__atomic_compare_exchange_n(&preexisting.left, &left, left - taken, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *is_told = (left & PREEXISTING_RECORDED) != 0;
    return taken;
}

COLD void preexisting_freed(size_t size, uintptr_t slot) {
    struct ledger_event event = {.context = preexisting.context};
    struct thread *thread = thread_get_for_free(slot);
    struct memtrace_counts *counts;
    int is_told;
    if (!event_begin(thread, slot)) {
        return;
    }
    event_tick(thread);
    event.size = preexisting_take_off(size, &is_told);
    counts = thread->counts;
    counter_add(&counts->free_count, 1);
    counter_add(&counts->free_bytes, event.size);
    peak_shrink(&thread->peak, runtime.space.header, event_live(thread), event.size);
    /* Whoever does not know what this path is finds as many allocations as frees. */
    ledger_alloc_many(&runtime.ledger, thread->column,
                      &(struct ledger_event){.context = preexisting.context}, 1);
    ledger_free_part(&runtime.ledger, thread->column, &event, 1);
    if (is_told && thread->stream != NULL &&
        !recorder_before(thread->stream, MEMTRACE_MARK_BEFORE_FREED, preexisting.context,
                         event.size) &&
        !(event_wait_for_room(thread) && recorder_before(thread->stream, MEMTRACE_MARK_BEFORE_FREED,
                                                         preexisting.context, event.size))) {
        recorder_lost(thread->stream, 0, 1);
    }
    event_end(thread);
}
