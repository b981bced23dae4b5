/* SPDX-License-Identifier: MIT */
/*
 * malloc.c: the malloc family, and the operators new of C++. Each function calls the real one and
 * counts what it did; a request that fails counts nothing. Sizes are those asked for. What is
 * called most begins in fast.c, which leaves to these what is out of the ordinary; the functions of
 * other allocators are called by reach/rebind.c.
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

INLINE int malloc_is_ready(void) {
    real_ensure();
    return LIKELY(real.free != NULL);
}

INLINE size_t malloc_padded(const struct real *from, size_t size) {
    return UNLIKELY(from->pads) && size < REAL_PADDED ? REAL_PADDED : size;
}

/* Nothing is counted, for good. */
INLINE int malloc_is_off(void) {
    return UNLIKELY(LOAD_RELAXED(&runtime.state) == RUNTIME_OFF);
}

INLINE int malloc_is_stopped(void) {
    return UNLIKELY(thread_self->gate == GATE_STOPPED) &&
           LOAD_RELAXED(&runtime.gate) == GATE_STOPPED && !switch_is_asked();
}

/* Counts what was allocated, and returns it. (The caller is looked at when it is there: its slot
 * may have got a guard meanwhile.) how: see event_alloc(). */
INLINE void *malloc_count(void *pointer, size_t size, struct frame caller, uint32_t how) {
    if (LIKELY(pointer != NULL && !malloc_is_off() && !malloc_is_stopped() &&
               !sampled_mode_skip(size))) {
        struct thread *thread = thread_get(event_place(caller));
        if (LIKELY(thread != NULL)) {
            event_alloc(thread, pointer, size, caller, how, 0);
        }
    }
    return pointer;
}

INLINE uint32_t malloc_how(const struct real *from) {
    return from == &real ? 0 : EVENT_FOREIGN;
}

/* --- allocations ------------------------------------------------------------------------------ */

void *malloc_slow(size_t size) {
    void *pointer;
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(size, 1);
    }
    pointer = real.malloc(size);
    return malloc_count(pointer, size, EVENT_CALLER(), 0);
}

void *malloc_from(const struct real *from, void *(*function)(size_t), size_t size,
                  uintptr_t frame) {
    void *pointer = function(malloc_padded(from, size));
    return malloc_count(pointer, size, event_caller(frame), malloc_how(from));
}

void *malloc_count_slow(void *pointer, size_t size) {
    return malloc_count(pointer, size, EVENT_CALLER(), 0);
}

void *malloc_count_aligned_slow(void *pointer, size_t size, size_t alignment) {
    return malloc_count(pointer, size, EVENT_CALLER(), event_aligned(alignment));
}

void *malloc_raise_peak_slow(void *pointer) {
    uintptr_t place = EVENT_PLACE();
    struct thread *thread = thread_get_for_free(place);
    if (event_begin(thread, place)) {
        peak_grow(&thread->peak, runtime.space.header, event_live(thread));
        event_end(thread);
    }
    return pointer;
}

void *calloc_slow(size_t number, size_t size) {
    size_t total;
    void *pointer;
    if (UNLIKELY(__builtin_mul_overflow(number, size, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(total, 1); /* static memory: zero */
    }
    if (sampled_mode_skip(total)) {
        return real.calloc(number, size);
    }
    pointer = LIKELY(malloc_padded(&real, total) == total)
                  ? real.calloc(number, size)
                  : real.calloc(1, malloc_padded(&real, total));
    return malloc_count(pointer, total, EVENT_CALLER(), MEMTRACE_ALLOC_ZEROED);
}

/* What is too large fails there: errno is that C library's. */
void *malloc_zeroed_from(const struct real *from, size_t number, size_t size, uintptr_t frame) {
    size_t total;
    void *pointer;
    if (UNLIKELY(__builtin_mul_overflow(number, size, &total))) {
        return from->calloc(number, size);
    }
    pointer = from->calloc(1, malloc_padded(from, total));
    return malloc_count(pointer, total, event_caller(frame),
                        malloc_how(from) | MEMTRACE_ALLOC_ZEROED);
}

void *calloc_count_slow(void *pointer, size_t size) {
    return malloc_count(pointer, size, EVENT_CALLER(), MEMTRACE_ALLOC_ZEROED);
}

INLINE_HERE int malloc_placed_from(const struct real *from, void **out, size_t alignment,
                                   size_t size, uintptr_t frame) {
    int result;
    if (UNLIKELY(!malloc_is_ready())) {
        void *pointer = real_early_alloc(size, alignment);
        *out = pointer != NULL ? pointer : *out;
        return pointer != NULL ? 0 : ENOMEM;
    }
    result = from->posix_memalign(out, alignment, malloc_padded(from, size));
    if (LIKELY(result == 0)) {
        malloc_count(*out, size, event_caller(frame), malloc_how(from) | event_aligned(alignment));
    }
    return result;
}

PUBLIC int posix_memalign(void **out, size_t alignment, size_t size) {
    return malloc_placed_from(&real, out, alignment, size, MACHINE_FRAME());
}

/* By `function` of `from`, which is there as soon as all is ready. */
INLINE void *malloc_aligned(const struct real *from, void *(*const *function)(size_t, size_t),
                            size_t alignment, size_t size, uintptr_t frame) {
    void *pointer;
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(size, alignment);
    }
    pointer = (*function)(alignment, malloc_padded(from, size));
    return malloc_count(pointer, size, event_caller(frame),
                        malloc_how(from) | event_aligned(alignment));
}

void *aligned_alloc_slow(size_t alignment, size_t size) {
    return malloc_aligned(&real, &real.aligned_alloc, alignment, size, MACHINE_FRAME());
}

void *memalign_slow(size_t alignment, size_t size) {
    return malloc_aligned(&real, &real.memalign, alignment, size, MACHINE_FRAME());
}

void *malloc_aligned_from(const struct real *from, void *(*function)(size_t, size_t),
                          size_t alignment, size_t size, uintptr_t frame) {
    return malloc_aligned(from, &function, alignment, size, frame);
}

INLINE void *malloc_pages(void *(*const *function)(size_t), size_t size, uintptr_t frame) {
    size_t page = sys_page_bytes();
    void *pointer;
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(size, page);
    }
    pointer = (*function)(malloc_padded(&real, size));
    return malloc_count(pointer, size, event_caller(frame), event_aligned(page));
}

PUBLIC void *valloc(size_t size) {
    return malloc_pages(&real.valloc, size, MACHINE_FRAME());
}

/* Rounds up to whole pages; what was asked for is counted. */
PUBLIC void *pvalloc(size_t size) {
    return malloc_pages(&real.pvalloc, size, MACHINE_FRAME());
}

PUBLIC size_t malloc_usable_size(void *pointer) {
    if (UNLIKELY(pointer != NULL && (real.free == NULL || real_is_early(pointer)))) {
        return real_early_size(pointer);
    }
    return malloc_is_ready() ? real.malloc_usable_size(pointer) : 0;
}

/* --- frees ------------------------------------------------------------------------------------ */

/* A block that the shadow heap does not know is about to be freed. */
static COLD void malloc_return_unknown(const struct real *to, void *pointer, uintptr_t slot) {
    size_t size = preexisting_size(to, pointer);
    if (size != 0) {
        preexisting_freed(size, slot);
    }
}

INLINE_HERE void malloc_return_to(const struct real *to, void *pointer, uintptr_t slot) {
    struct thread *thread;
    if (pointer == NULL) {
        return;
    }
    if (UNLIKELY(real.free == NULL || real_is_early(pointer))) {
        return; /* of the early arena: never taken back */
    }
    if (malloc_is_off() || (malloc_is_stopped() && event_is_unknown(machine_untagged(pointer)))) {
        to->free(pointer);
        return;
    }
    thread = event_skips_free(pointer) ? NULL : thread_get_for_free(slot);
    if (LIKELY(thread != NULL) && UNLIKELY(!event_free(thread, pointer, slot))) {
        malloc_return_unknown(to, pointer, slot);
    }
    to->free(pointer);
}

void free_slow(void *pointer) {
    malloc_return_to(&real, pointer, EVENT_PLACE());
}

void free_from_peak_slow(void *pointer, size_t size, struct memtrace_counts *totals) {
    counter_add(&totals->free_bytes, -(uint64_t)size);
    malloc_return_to(&real, pointer, EVENT_PLACE());
}

/* --- realloc ---------------------------------------------------------------------------------- */

/* A block of the early arena moves to the real heap. */
static COLD void *malloc_move_early(void *old, size_t size) {
    size_t old_size = real_early_size(old);
    void *pointer = malloc_is_ready() ? real.malloc(size) : real_early_alloc(size, 1);
    volatile char *to = pointer; /* no call of memcpy: it may be too early for that */
    for (size_t i = 0; to != NULL && i < old_size && i < size; i++) {
        to[i] = ((const char *)old)[i];
    }
    return pointer;
}

/* The event itself is lost; but the block that moves stays known by what it was, so that its end is
 * seen, and nothing is taken for it that lies where it lay. */
static COLD void *malloc_resize_uncounted(const struct real *from, void *old, size_t size) {
    struct event_taken taken;
    void *pointer;
    if (size == 0) { /* its end: noticed when its place is used again, as that of any free */
        return from->realloc(old, 0);
    }
    event_take_uncounted(old, &taken);
    pointer = from->realloc(old, malloc_padded(from, size));
    event_put_elsewhere(&taken, pointer != NULL ? pointer : old);
    return pointer;
}

/* The old block is taken out before: the moment the real function frees it, another thread may get
 * its address. If it fails, the block is put back as it was, and nothing was counted. */
INLINE_HERE void *malloc_resized_from(const struct real *from, void *old, size_t size,
                                      uintptr_t frame) {
    struct frame caller = event_caller(frame);
    struct thread *thread;
    struct event_taken taken;
    size_t before_bytes;
    void *pointer;
    if (UNLIKELY(!malloc_is_ready() || real_is_early(old))) {
        return old == NULL ? real_early_alloc(size, 1) : malloc_move_early(old, size);
    }
    if (old == NULL) {
        pointer = from->realloc(NULL, malloc_padded(from, size));
        return malloc_count(pointer, size, caller, malloc_how(from));
    }
    if (event_skips_free(old) && sampled_mode_skip(size)) {
        return from->realloc(old, size == 0 ? 0 : malloc_padded(from, size));
    }
    thread = thread_get_for_free(event_place(caller));
    if (UNLIKELY(thread == NULL)) {
        return malloc_resize_uncounted(from, old, size);
    }
    event_take(thread, old, &taken);
    before_bytes = UNLIKELY(!taken.known) ? preexisting_size(from, old) : 0;
    pointer = from->realloc(old, size == 0 ? 0 : malloc_padded(from, size));
    if (UNLIKELY(before_bytes != 0) && (pointer != NULL || size == 0)) {
        preexisting_freed(before_bytes, event_place(caller));
    }
    if (pointer == NULL && size != 0) {
        event_put_back(&taken);
    } else if (pointer != NULL && LIKELY(thread_counts(thread))) {
        event_count_taken(thread, &taken, caller, 1);
        event_alloc(thread, pointer, size, caller, malloc_how(from), taken.name);
        return pointer;
    } else {
        event_count_taken(thread, &taken, caller, 0);
    }
    thread_done(thread);
    return pointer;
}

void *realloc_slow(void *old, size_t size) {
    return malloc_resized_from(&real, old, size, MACHINE_FRAME());
}

/* --- operators ----------------------------------------------------------------------------------
 *
 * Those of new, which begin in fast.c, as do those of delete, by mangled name (Itanium ABI 5.1.5,
 * "Special names"; size_t is unsigned long). A block of new is a block of malloc, as in libstdc++,
 * libc++ and the usual allocators. Where memory is out, the real operator runs the new-handler and
 * throws; its exception passes through here by this file's unwind tables. */

/* frame: MACHINE_FRAME() of the operator, whose caller is charged. */
static __attribute__((noinline)) void *malloc_for_new(size_t size, uintptr_t frame) {
    void *pointer;
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(size, 1);
    }
    if (sampled_mode_skip(size)) {
        return real.malloc(size != 0 ? size : 1);
    }
    pointer = real.malloc(size != 0 ? size : 1);
    return malloc_count(pointer, size, event_caller(frame), 0);
}

static __attribute__((noinline)) void *malloc_for_aligned_new(size_t size, size_t alignment,
                                                              uintptr_t frame) {
    void *pointer = NULL;
    if (UNLIKELY(!malloc_is_ready())) {
        return real_early_alloc(size, alignment);
    }
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    if (real.posix_memalign(&pointer, alignment, malloc_padded(&real, size != 0 ? size : 1)) != 0) {
        return NULL;
    }
    return malloc_count(pointer, size, event_caller(frame), event_aligned(alignment));
}

typedef void *new_function(size_t size);
typedef void *nothrow_function(size_t size, const void *tag);
typedef void *aligned_function(size_t size, size_t alignment);
typedef void *aligned_nothrow_function(size_t size, size_t alignment, const void *tag);

/* A program without libstdc++ that calls operator new brought its own: ours is then never called.
 * NULL all the same where it cannot be found. */
#define NAME_OF(name) #name
#define OUT_OF_MEMORY(type, name, ...)                                                             \
    ({                                                                                             \
        type *real_ = (type *)real_symbol(NAME_OF(name));                                          \
        real_ != NULL ? real_(__VA_ARGS__) : NULL;                                                 \
    })

/* Whether a nothrow operator has anything to do but return NULL: the real one would throw and
 * catch, and allocate its exception. */
static int has_new_handler(void) {
    typedef void (*handler)(void);
    handler (*get)(void) = (handler(*)(void))real_symbol("_ZSt15get_new_handlerv");
    return get == NULL || get() != NULL;
}

#define OUT_OF_MEMORY_NOTHROW(type, name, ...)                                                     \
    (has_new_handler() ? OUT_OF_MEMORY(type, name, __VA_ARGS__) : NULL)

#define DEFINE_NEW(slow, name)                                                                     \
    void *slow(size_t size) {                                                                      \
        void *pointer = malloc_for_new(size, MACHINE_FRAME());                                     \
        return LIKELY(pointer != NULL) ? pointer : OUT_OF_MEMORY(new_function, name, size);        \
    }

#define DEFINE_NEW_NOTHROW(slow, name)                                                             \
    void *slow(size_t size, const void *tag) {                                                     \
        void *pointer = malloc_for_new(size, MACHINE_FRAME());                                     \
        return LIKELY(pointer != NULL) ? pointer                                                   \
                                       : OUT_OF_MEMORY_NOTHROW(nothrow_function, name, size, tag); \
    }

#define DEFINE_NEW_ALIGNED(slow, name)                                                             \
    void *slow(size_t size, size_t alignment) {                                                    \
        void *pointer = malloc_for_aligned_new(size, alignment, MACHINE_FRAME());                  \
        return LIKELY(pointer != NULL) ? pointer                                                   \
                                       : OUT_OF_MEMORY(aligned_function, name, size, alignment);   \
    }

/* Hardly ever called: these have no fast half. */
#define DEFINE_NEW_ALIGNED_NOTHROW(name)                                                           \
    PUBLIC void *name(size_t size, size_t alignment, const void *tag);                             \
    PUBLIC void *name(size_t size, size_t alignment, const void *tag) {                            \
        void *pointer = malloc_for_aligned_new(size, alignment, MACHINE_FRAME());                  \
        return LIKELY(pointer != NULL)                                                             \
                   ? pointer                                                                       \
                   : OUT_OF_MEMORY_NOTHROW(aligned_nothrow_function, name, size, alignment, tag);  \
    }

DEFINE_NEW(new_slow, MACHINE_OF_SIZE(_Znw, ))
DEFINE_NEW(new_array_slow, MACHINE_OF_SIZE(_Zna, ))
DEFINE_NEW_NOTHROW(new_nothrow_slow, MACHINE_OF_SIZE(_Znw, RKSt9nothrow_t))
DEFINE_NEW_NOTHROW(new_array_nothrow_slow, MACHINE_OF_SIZE(_Zna, RKSt9nothrow_t))
DEFINE_NEW_ALIGNED(new_aligned_slow, MACHINE_OF_SIZE(_Znw, St11align_val_t))
DEFINE_NEW_ALIGNED(new_array_aligned_slow, MACHINE_OF_SIZE(_Zna, St11align_val_t))
DEFINE_NEW_ALIGNED_NOTHROW(MACHINE_OF_SIZE(_Znw, St11align_val_tRKSt9nothrow_t))
DEFINE_NEW_ALIGNED_NOTHROW(MACHINE_OF_SIZE(_Zna, St11align_val_tRKSt9nothrow_t))
