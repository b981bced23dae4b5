/* SPDX-License-Identifier: MIT */
/*
 * malloc.c: the malloc family. Each function calls the real one and counts what it did; a request
 * that fails counts nothing. Sizes are those asked for. What is called most begins in fast.c.
 */
#define _GNU_SOURCE
#include "runtime/entry/malloc.h"
#include "runtime/base/compiler.h"
#include "runtime/entry/event.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/entry/switch.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

INLINE int is_ready(void) {
    if (UNLIKELY(real.free == NULL)) {
        real_find();
    }
    return LIKELY(real.free != NULL);
}

INLINE size_t padded_for(const struct real *from, size_t size) {
    return UNLIKELY(from->pads) && size < REAL_PADDED ? REAL_PADDED : size;
}

INLINE size_t padded(size_t size) {
    return padded_for(&real, size);
}

/* Nothing is counted, for good. */
INLINE int is_off(void) {
    return UNLIKELY(LOAD_RELAXED(&runtime.state) == RUNTIME_OFF);
}

INLINE int is_stopped(void) {
    return UNLIKELY(thread_self->gate == GATE_STOPPED) &&
           LOAD_RELAXED(&runtime.gate) == GATE_STOPPED && !switch_is_asked();
}

/* how: see event_alloc(). */
INLINE void count(void *pointer, size_t size, struct frame caller, uint32_t how) {
    if (LIKELY(pointer != NULL && !is_off() && !is_stopped() && !sampled_mode_skip(size))) {
        struct thread *thread = thread_get(event_place(caller));
        if (LIKELY(thread != NULL)) {
            event_alloc(thread, pointer, size, caller, how, 0);
        }
    }
}

void *malloc_slow(size_t size) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, 1);
    }
    if (is_off()) {
        return real.malloc(size);
    }
    pointer = real.malloc(size);
    count(pointer, size, EVENT_CALLER(), 0);
    return pointer;
}

void *malloc_count_slow(void *pointer, size_t size) {
    count(pointer, size, EVENT_CALLER(), 0);
    return pointer;
}

void *malloc_raise_peak_slow(void *pointer) {
    struct thread *thread = thread_get_for_free(EVENT_PLACE());
    if (thread != NULL && event_enter(thread, EVENT_PLACE())) {
        peak_grow(&thread->peak, runtime.space.header, event_live(thread));
        event_leave(thread);
        thread_done(thread);
    }
    return pointer;
}

/* A block that the shadow heap does not know is about to be freed. */
static COLD void release_unknown(const struct real *to, void *pointer, uintptr_t slot) {
    size_t size = preexisting_size(to, pointer);
    if (size != 0) {
        preexisting_freed(size, slot);
    }
}

INLINE void release_to(const struct real *to, void *pointer, uintptr_t slot) {
    struct thread *thread;
    if (pointer == NULL) {
        return;
    }
    if (UNLIKELY(real.free == NULL || real_is_early(pointer))) {
        return; /* of the early arena: never taken back */
    }
    if (is_off() || (is_stopped() && event_is_unknown(machine_untagged(pointer)))) {
        to->free(pointer);
        return;
    }
    thread = event_skips_free(pointer) ? NULL : thread_get_for_free(slot);
    if (LIKELY(thread != NULL) && UNLIKELY(!event_free(thread, pointer, slot))) {
        release_unknown(to, pointer, slot);
    }
    to->free(pointer);
}

INLINE void release(void *pointer, uintptr_t slot) {
    release_to(&real, pointer, slot);
}

void free_slow(void *pointer) {
    release(pointer, EVENT_PLACE());
}

void free_from_peak_slow(void *pointer, size_t size, struct memtrace_counts *totals) {
    counter_add(&totals->free_bytes, -(uint64_t)size);
    release(pointer, EVENT_PLACE());
}

void *malloc_count_aligned_slow(void *pointer, size_t size, size_t alignment) {
    count(pointer, size, EVENT_CALLER(), event_aligned(alignment));
    return pointer;
}

void *calloc_slow(size_t number, size_t size) {
    void *pointer;
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(number, size, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(total, 1); /* static memory: zero */
    }
    if (sampled_mode_skip(total)) {
        return real.calloc(number, size);
    }
    pointer =
        LIKELY(padded(total) == total) ? real.calloc(number, size) : real.calloc(1, padded(total));
    count(pointer, total, EVENT_CALLER(), MEMTRACE_ALLOC_ZEROED);
    return pointer;
}

void *calloc_count_slow(void *pointer, size_t size) {
    count(pointer, size, EVENT_CALLER(), MEMTRACE_ALLOC_ZEROED);
    return pointer;
}

/* A block of the early arena moves to the real heap. */
static COLD void *realloc_early(void *old, size_t size) {
    size_t old_size = real_early_size(old);
    void *pointer = is_ready() ? real.malloc(size) : real_early_alloc(size, 1);
    volatile char *to = pointer; /* no call of memcpy: it may be too early for that */
    for (size_t i = 0; to != NULL && i < old_size && i < size; i++) {
        to[i] = ((const char *)old)[i];
    }
    return pointer;
}

/* The event itself is lost; but the block that moves stays known by what it was, so that its end is
 * seen, and nothing is taken for it that lies where it lay. */
static COLD void *resize_uncounted(const struct real *from, void *old, size_t size) {
    struct event_taken taken;
    void *pointer;
    if (size == 0) { /* its end: noticed when its place is used again, as that of any free */
        return from->realloc(old, 0);
    }
    event_take_uncounted(old, &taken);
    pointer = from->realloc(old, padded_for(from, size));
    event_put_elsewhere(&taken, pointer != NULL ? pointer : old);
    return pointer;
}

/* The old block is taken out before: the moment the real function frees it, another thread may get
 * its address. If it fails, the block is put back as it was, and nothing was counted. */
INLINE void *resize(const struct real *from, void *old, size_t size, struct frame caller,
                    uint32_t how) {
    struct thread *thread;
    struct event_taken taken;
    size_t before_bytes;
    void *pointer;
    if (UNLIKELY(!is_ready() || real_is_early(old))) {
        return old == NULL ? real_early_alloc(size, 1) : realloc_early(old, size);
    }
    if (event_skips_free(old) && sampled_mode_skip(size)) {
        return from->realloc(old, size == 0 ? 0 : padded_for(from, size));
    }
    thread = thread_get_for_free(event_place(caller));
    if (UNLIKELY(thread == NULL)) {
        return resize_uncounted(from, old, size);
    }
    event_take(thread, old, &taken);
    before_bytes = UNLIKELY(!taken.known) ? preexisting_size(from, old) : 0;
    pointer = from->realloc(old, size == 0 && old != NULL ? 0 : padded_for(from, size));
    if (UNLIKELY(before_bytes != 0) && (pointer != NULL || size == 0)) {
        preexisting_freed(before_bytes, event_place(caller));
    }
    if (pointer == NULL && !(size == 0 && old != NULL)) {
        event_put_back(&taken);
    } else if (pointer != NULL && LIKELY(thread_counts(thread))) {
        event_count_taken(thread, &taken, caller, 1);
        event_alloc(thread, pointer, size, caller, how, taken.name);
        return pointer;
    } else {
        event_count_taken(thread, &taken, caller, 0);
    }
    thread_done(thread);
    return pointer;
}

void *realloc_slow(void *old, size_t size) {
    void *pointer;
    if (old == NULL) {
        if (UNLIKELY(!is_ready())) {
            return real_early_alloc(size, 1);
        }
        pointer = real.realloc(NULL, padded(size));
        count(pointer, size, EVENT_CALLER(), 0);
        return pointer;
    }
    return resize(&real, old, size, EVENT_CALLER(), 0);
}

PUBLIC int posix_memalign(void **out, size_t alignment, size_t size) {
    int result;
    if (UNLIKELY(!is_ready())) {
        void *pointer = real_early_alloc(size, alignment);
        *out = pointer != NULL ? pointer : *out;
        return pointer != NULL ? 0 : ENOMEM;
    }
    result = real.posix_memalign(out, alignment, padded(size));
    if (LIKELY(result == 0)) {
        count(*out, size, EVENT_CALLER(), event_aligned(alignment));
    }
    return result;
}

void *aligned_alloc_slow(size_t alignment, size_t size) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, alignment);
    }
    pointer = real.aligned_alloc(alignment, padded(size));
    count(pointer, size, EVENT_CALLER(), event_aligned(alignment));
    return pointer;
}

void *memalign_slow(size_t alignment, size_t size) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, alignment);
    }
    pointer = real.memalign(alignment, padded(size));
    count(pointer, size, EVENT_CALLER(), event_aligned(alignment));
    return pointer;
}

PUBLIC void *valloc(size_t size) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, sys_page_bytes());
    }
    pointer = real.valloc(padded(size));
    count(pointer, size, EVENT_CALLER(), event_aligned(sys_page_bytes()));
    return pointer;
}

/* Rounds up to whole pages; what was asked for is counted. */
PUBLIC void *pvalloc(size_t size) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, sys_page_bytes());
    }
    pointer = real.pvalloc(padded(size));
    count(pointer, size, EVENT_CALLER(), event_aligned(sys_page_bytes()));
    return pointer;
}

PUBLIC size_t malloc_usable_size(void *pointer) {
    if (UNLIKELY(pointer != NULL && (real.free == NULL || real_is_early(pointer)))) {
        return real_early_size(pointer);
    }
    return is_ready() ? real.malloc_usable_size(pointer) : 0;
}

/* --- for operator new, which differ only in names --------------------------------------------- */

void *malloc_for_new(size_t size, uintptr_t frame) {
    void *pointer;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, 1);
    }
    if (sampled_mode_skip(size)) {
        return real.malloc(size != 0 ? size : 1);
    }
    pointer = real.malloc(size != 0 ? size : 1);
    count(pointer, size, event_caller(frame), 0);
    return pointer;
}

void *malloc_for_aligned_new(size_t size, size_t alignment, uintptr_t frame) {
    void *pointer = NULL;
    if (UNLIKELY(!is_ready())) {
        return real_early_alloc(size, alignment);
    }
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    if (real.posix_memalign(&pointer, alignment, padded(size != 0 ? size : 1)) != 0) {
        return NULL;
    }
    count(pointer, size, event_caller(frame), event_aligned(alignment));
    return pointer;
}

/* --- for the functions of other allocators (inject_heap.c) -------------------------------------
 */

INLINE uint32_t how_of(const struct real *from) {
    return from == &real ? 0 : EVENT_FOREIGN;
}

void *malloc_from(const struct real *from, void *(*function)(size_t), size_t size,
                  uintptr_t frame) {
    void *pointer = function(padded_for(from, size));
    count(pointer, size, event_caller(frame), how_of(from));
    return pointer;
}

/* What is too large fails there: errno is that C library's. */
void *malloc_zeroed_from(const struct real *from, size_t number, size_t size, uintptr_t frame) {
    size_t total;
    void *pointer;
    if (UNLIKELY(__builtin_mul_overflow(number, size, &total))) {
        return from->calloc(number, size);
    }
    pointer = from->calloc(1, padded_for(from, total));
    count(pointer, total, event_caller(frame), how_of(from) | MEMTRACE_ALLOC_ZEROED);
    return pointer;
}

void *malloc_resized_from(const struct real *from, void *old, size_t size, uintptr_t frame) {
    struct frame caller = event_caller(frame);
    void *pointer;
    if (old != NULL) {
        return resize(from, old, size, caller, how_of(from));
    }
    pointer = from->realloc(NULL, padded_for(from, size));
    count(pointer, size, caller, how_of(from));
    return pointer;
}

int malloc_placed_from(const struct real *from, void **out, size_t alignment, size_t size,
                       uintptr_t frame) {
    int result = from->posix_memalign(out, alignment, padded_for(from, size));
    if (LIKELY(result == 0)) {
        count(*out, size, event_caller(frame), how_of(from) | event_aligned(alignment));
    }
    return result;
}

void *malloc_aligned_from(const struct real *from, void *(*function)(size_t, size_t),
                          size_t alignment, size_t size, uintptr_t frame) {
    void *pointer = function(alignment, padded_for(from, size));
    count(pointer, size, event_caller(frame), how_of(from) | event_aligned(alignment));
    return pointer;
}

void malloc_return_to(const struct real *to, void *pointer, uintptr_t slot) {
    release_to(to, pointer, slot);
}
