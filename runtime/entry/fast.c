/* SPDX-License-Identifier: MIT */
/*
 * fast.c: malloc, its relatives, free and the operators new and delete where nothing is out of the
 * ordinary: a small block, allocated again from the same place with the same stack, or freed by the
 * thread that allocated it. Any test that fails ends in a jump to malloc.c, which does the whole
 * event as if it had been called itself: a jump leaves the caller's return slot and frame pointer
 * where they were. So this file is built without frame pointers, and always optimised.
 *
 * All tests are made before anything is stored, and then each number changes by one instruction. A
 * signal handler may come between any two, with whole events of its own: docs/architecture.md tells
 * why that is right.
 */
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/switch.h"
#include "runtime/machine/machine.h"

#include <malloc.h>
#include <stdlib.h>

MACHINE_RESERVE_REGISTERS();

/* What a fast half has of its thread. A forked child finds the struct wiped: so the pointers are
 * read before the gate, which says that they are there. */
struct hands {
    struct thread *thread;
    const struct walk_last *last;
    struct ledger_column *column;
    struct memtrace_counts *totals;
};

/* 1, or 0: not the ordinary. */
INLINE int take_hands(struct hands *hands) {
    struct thread *thread = thread_self;
    const volatile clock_word *clock = thread->clock_word;
    hands->thread = thread;
    hands->last = &thread->walker->last;
    hands->column = thread->column;
    hands->totals = thread->counts;
    SIGNAL_FENCE();
    return LIKELY(thread->gate == GATE_OPEN) && LIKELY(*clock == thread->fast_seen);
}

/* Where a block's record lies. */
struct place {
    uint8_t *leaf;
    uint64_t *record;
};

/* Of a block below REAL_ADDRESSES. 1, or 0: no block was near it yet. */
INLINE int find_place(uintptr_t block, struct place *place) {
    struct shadow_heap heap = event_heap();
    place->leaf = heap.root[block >> MEMTRACE_SPAN_SHIFT];
    place->record = heap_fine(&heap, place->leaf, block);
    return LIKELY(place->leaf != NULL);
}

INLINE uint16_t *birth_high(const struct place *place, uintptr_t block) {
    struct shadow_heap heap = event_heap();
    return heap_birth_high(&heap, place->leaf, block);
}

INLINE int is_at_epoch(const struct memtrace_cell *cell) {
    return LIKELY(runtime.space.header->peak_epoch == cell->peak_epoch);
}

/* --- allocations ------------------------------------------------------------------------------ */

/* Whether this allocation is from the same place as the newest that was walked, which is read. Its
 * slot is compared last: an event in a handler leaves another there, since ours is in use; so if it
 * is ours, all was read together. The word is read when it is known to be on this stack. */
INLINE int is_repeated(const struct walk_last *last, uintptr_t place, struct walk_last *read) {
    if (UNLIKELY(last->counted_pc != MACHINE_RETURNS_TO(place) ||
                 last->fp != MACHINE_CALLER_FP())) {
        return 0;
    }
    SIGNAL_FENCE();
    read->word = last->word;
    read->parent = last->parent;
    read->context = last->context;
    read->cell = last->cell;
    SIGNAL_FENCE();
    return LIKELY(machine_place_of(last->slot, last->sp) == place) &&
           LIKELY(*read->word == read->parent);
}

enum allocated { COUNTED, COUNTED_AT_PEAK, NOT_COUNTED };

/* place: MACHINE_PLACE() of the function that this is inlined into, malloc or its like. */
INLINE enum allocated count_small(void *pointer, size_t size, uintptr_t place_of_caller) {
    uintptr_t block = machine_untagged(pointer);
    struct walk_last last;
    struct thread *thread;
    struct hands hands;
    struct place place;
    if (!take_hands(&hands) || !is_repeated(hands.last, place_of_caller, &last) ||
        !is_at_epoch(last.cell) || !find_place(block, &place) ||
        UNLIKELY(*place.record != 0)) { /* the last: a block whose free was missed */
        return NOT_COUNTED;
    }
    thread = hands.thread;
    counter_add(&last.cell->alloc_bytes, size);
    counter_add(&last.cell->alloc_count, 1);
    counter_add(&hands.totals->alloc_count, 1);
    counter_add(&hands.totals->alloc_bytes, size);
    if (UNLIKELY(thread->young_stamp == 0)) {
        *birth_high(&place, block) = (uint16_t)(thread->tick >> TICK_LOW_BITS);
    }
    thread->last_block = block;
    STORE_RELEASE(place.record, (last.context | (uint64_t)size << MEMTRACE_BLOCK_SIZE_SHIFT) ^
                                    thread->stamp ^
                                    (uint64_t)block << MEMTRACE_BLOCK_ADDRESS_SHIFT);
    return LIKELY(!peak_is_passed(&thread->peak, peak_live(hands.totals))) ? COUNTED
                                                                           : COUNTED_AT_PEAK;
}

/* The whole of a function that gives out small blocks by `allocate`, each of its ends a jump:
 * `other` does what is not small, `otherwise` counts what was not counted. */
#define ALLOCATE(size, is_other, other, allocate, otherwise)                                       \
    void *pointer;                                                                                 \
    enum allocated counted;                                                                        \
    if (UNLIKELY(is_other)) {                                                                      \
        return other;                                                                              \
    }                                                                                              \
    pointer = allocate;                                                                            \
    counted = count_small(pointer, size, MACHINE_PLACE());                                         \
    if (LIKELY(counted == COUNTED)) {                                                              \
        return pointer;                                                                            \
    }                                                                                              \
    return counted == COUNTED_AT_PEAK ? malloc_raise_peak_slow(pointer) : (otherwise)

/* What `allocate` gives; where that is nothing, the function ends with `otherwise`. Before anything
 * is counted: where blocks lie below 32 MiB, NULL has a place like theirs. */
#define GIVEN(allocate, otherwise)                                                                 \
    ({                                                                                             \
        void *given = (allocate);                                                                  \
        if (UNLIKELY(given == NULL)) {                                                             \
            return otherwise;                                                                      \
        }                                                                                          \
        given;                                                                                     \
    })

PUBLIC void *malloc(size_t size) {
    ALLOCATE(size, size >= real.small_limit, real_other_malloc(size), real.malloc(size),
             malloc_count_slow(pointer, size));
}

/* A function of its own, so that the ordinary saves no registers for it. */
static __attribute__((noinline)) void *calloc_other(size_t number, size_t size) {
    size_t total;
    return LIKELY(!real.pads && !__builtin_mul_overflow(number, size, &total) &&
                  sampled_mode_skip(total))
               ? real.calloc(number, size)
               : calloc_slow(number, size);
}

PUBLIC void *calloc(size_t number, size_t size) {
    size_t total;
    ALLOCATE(total,
             __builtin_mul_overflow(number, size, &total) || total >= real.small_limit || real.pads,
             calloc_other(number, size), real.calloc(1, total), calloc_count_slow(pointer, total));
}

/* Has a fast half in mode sampled only. */
PUBLIC void *realloc(void *old, size_t size) {
    return LIKELY(!real.pads) && event_skips_free(old) && sampled_mode_skip(size)
               ? real.realloc(old, size)
               : realloc_slow(old, size);
}

/* --- frees ------------------------------------------------------------------------------------ */

enum freed { FREED, FREED_AT_PEAK, NOT_YOUNG, NOT_FREED };

/* What was added where: a handler may fork meanwhile, and the thread have another record then. */
struct freed_bytes {
    size_t size;
    struct memtrace_counts *totals;
};

/* What a record tells besides its address. */
INLINE uint64_t decode(uint64_t record, uintptr_t block) {
    return record ^ (uint64_t)block << MEMTRACE_BLOCK_ADDRESS_SHIFT;
}

/* Whether the thread allocated the block, which starts here. */
INLINE int is_own(const struct thread *thread, uint64_t decoded) {
    enum { ABOVE = 64 - MEMTRACE_BLOCK_BIRTH_SHIFT };
    return LIKELY((decoded ^ thread->stamp) << ABOVE >> (ABOVE + MEMTRACE_BLOCK_THREAD_SHIFT) == 0);
}

/* The same of a block that is less than a tick old: nothing is left above its size then. */
INLINE int is_own_and_young(const struct thread *thread, uint64_t *decoded) {
    *decoded ^= thread->young_stamp;
    return LIKELY(*decoded >> MEMTRACE_BLOCK_THREAD_SHIFT == 0);
}

/* Of an own block, a young one as above. */
INLINE size_t size_of(uint64_t decoded, int is_young) {
    size_t size = decoded >> MEMTRACE_BLOCK_SIZE_SHIFT;
    return is_young ? size : size & (FINE_SIZE_LIMIT - 1);
}

/* What counts the lifetime of an own block. NULL: it is not the ordinary. */
INLINE uint32_t *bucket_of(const struct thread *thread, uintptr_t block, const struct place *place,
                           uint64_t decoded, const struct memtrace_cell *cell) {
    uint32_t birth = (uint32_t)(decoded >> MEMTRACE_BLOCK_BIRTH_SHIFT);
    uint32_t bucket;
    if (UNLIKELY(thread->young_stamp == 0)) {
        birth |= (uint32_t)*birth_high(place, block) << TICK_LOW_BITS;
    }
    bucket = ledger_lifetime_bucket(thread->tick - birth);
    return LIKELY(bucket != 0) ? ledger_bucket(&runtime.ledger, cell, bucket) : NULL;
}

INLINE enum freed count_free(void *pointer, int is_young, struct freed_bytes *bytes) {
    uintptr_t block = machine_untagged(pointer);
    struct memtrace_cell *cell;
    struct thread *thread;
    struct hands hands;
    uint32_t *bucket = NULL;
    struct place place;
    uint64_t decoded;
    if (!take_hands(&hands) || !find_place(block, &place)) {
        return NOT_FREED;
    }
    thread = hands.thread;
    decoded = decode(*place.record, block);
    if (is_young ? !is_own_and_young(thread, &decoded) : !is_own(thread, decoded)) {
        return NOT_YOUNG;
    }
    cell = ledger_cell(hands.column, decoded & ((1u << MEMTRACE_CONTEXT_BITS) - 1));
    if (UNLIKELY(cell == NULL) || !is_at_epoch(cell)) {
        return NOT_FREED;
    }
    if (!is_young) {
        bucket = bucket_of(thread, block, &place, decoded, cell);
        if (UNLIKELY(bucket == NULL)) {
            return NOT_FREED;
        }
    }
    bytes->size = size_of(decoded, is_young);
    bytes->totals = hands.totals;
    counter_add(&hands.totals->free_bytes, bytes->size);
    if (UNLIKELY(peak_is_left(&thread->peak, peak_live(hands.totals)))) {
        return FREED_AT_PEAK;
    }
    STORE_RELAXED(place.record, 0);
    if (!is_young) {
        counter_increment(bucket);
    }
    counter_add(&cell->free_bytes, bytes->size);
    counter_add(&cell->free_count, 1);
    if (thread->last_block == block) {
        counter_add(&cell->temporary_count, 1);
    }
    counter_add(&hands.totals->free_count, 1);
    return FREED;
}

/* The whole of a function that frees, each of its ends a jump. */
#define FREE(pointer, is_young, otherwise)                                                         \
    struct freed_bytes bytes;                                                                      \
    switch (count_free(pointer, is_young, &bytes)) {                                               \
    case FREED:                                                                                    \
        real.free(pointer);                                                                        \
        break;                                                                                     \
    case FREED_AT_PEAK:                                                                            \
        free_from_peak_slow(pointer, bytes.size, bytes.totals);                                    \
        break;                                                                                     \
    case NOT_YOUNG:                                                                                \
        otherwise(pointer);                                                                        \
        break;                                                                                     \
    case NOT_FREED:                                                                                \
        free_slow(pointer);                                                                        \
    }

static __attribute__((noinline)) void free_older(void *pointer) {
    FREE(pointer, 0, free_slow);
}

#define FREE_ANY(pointer)                                                                          \
    if (UNLIKELY(machine_untagged(pointer) >= real_free_limit)) {                                  \
        real_other_free(pointer);                                                                  \
        return;                                                                                    \
    }                                                                                              \
    FREE(pointer, 1, free_older)

UNMERGED PUBLIC void free(void *pointer) {
    FREE_ANY(pointer);
}

/* --- operators, and blocks that are aligned --------------------------------------------------- */

static __attribute__((noinline)) void *new_other(size_t size, void *(*slow)(size_t)) {
    void *pointer = !real.pads && size != 0 && sampled_mode_skip(size) ? real.malloc(size) : NULL;
    return LIKELY(pointer != NULL) ? pointer : slow(size);
}

/* Those of C++ by mangled name. What cannot be had is for the slow halves: it may throw. */
#define DEFINE_NEW(name, slow)                                                                     \
    PUBLIC void *name(size_t size);                                                                \
    PUBLIC void *name(size_t size) {                                                               \
        ALLOCATE(size, size == 0 || size >= real.small_limit, new_other(size, slow),               \
                 GIVEN(real.malloc(size), slow(size)), malloc_count_slow(pointer, size));          \
    }

#define DEFINE_NEW_NOTHROW(name, slow)                                                             \
    PUBLIC void *name(size_t size, const void *tag);                                               \
    PUBLIC void *name(size_t size, const void *tag) {                                              \
        ALLOCATE(size, size == 0 || size >= real.small_limit, slow(size, tag),                     \
                 GIVEN(real.malloc(size), slow(size, tag)), malloc_count_slow(pointer, size));     \
    }

/* Recordings, which tell the alignment, are for the slow halves. */
#define DEFINE_NEW_ALIGNED(name, slow)                                                             \
    PUBLIC void *name(size_t size, size_t alignment);                                              \
    PUBLIC void *name(size_t size, size_t alignment) {                                             \
        ALLOCATE(size,                                                                             \
                 size == 0 || size >= real.small_limit || real.pads || alignment < sizeof(void *), \
                 slow(size, alignment),                                                            \
                 GIVEN(real.aligned_alloc(alignment, size), slow(size, alignment)),                \
                 malloc_count_aligned_slow(pointer, size, alignment));                             \
    }

DEFINE_NEW(MACHINE_OF_SIZE(_Znw, ), new_slow)
DEFINE_NEW(MACHINE_OF_SIZE(_Zna, ), new_array_slow)
DEFINE_NEW_NOTHROW(MACHINE_OF_SIZE(_Znw, RKSt9nothrow_t), new_nothrow_slow)
DEFINE_NEW_NOTHROW(MACHINE_OF_SIZE(_Zna, RKSt9nothrow_t), new_array_nothrow_slow)
DEFINE_NEW_ALIGNED(MACHINE_OF_SIZE(_Znw, St11align_val_t), new_aligned_slow)
DEFINE_NEW_ALIGNED(MACHINE_OF_SIZE(_Zna, St11align_val_t), new_array_aligned_slow)

#define DEFINE_ALIGNED(name, slow)                                                                 \
    PUBLIC void *name(size_t alignment, size_t size) {                                             \
        ALLOCATE(size, size >= real.small_limit || real.pads, slow(alignment, size),               \
                 real.name(alignment, size), malloc_count_aligned_slow(pointer, size, alignment)); \
    }

DEFINE_ALIGNED(aligned_alloc, aligned_alloc_slow)
DEFINE_ALIGNED(memalign, memalign_slow)

/* The sizes, alignments and tags are promises of the caller that nobody needs. The C names are
 * ours: newer headers declare free_sized() with its size. Each has its own code: valgrind
 * knows functions by their addresses, and would take all for the same one of them. */
#define SAME_AS_FREE(name) SAME_AS_FREE_BY_NAME(name)
#define SAME_AS_FREE_BY_NAME(name)                                                                 \
    PUBLIC void same_as_free_##name(void *pointer) __asm__(#name);                                 \
    UNMERGED PUBLIC void same_as_free_##name(void *pointer) {                                      \
        FREE_ANY(pointer);                                                                         \
    }

SAME_AS_FREE(cfree)
SAME_AS_FREE(free_sized)
SAME_AS_FREE(free_aligned_sized)
SAME_AS_FREE(_ZdlPv)
SAME_AS_FREE(_ZdaPv)
SAME_AS_FREE(MACHINE_OF_SIZE(_ZdlPv, ))
SAME_AS_FREE(MACHINE_OF_SIZE(_ZdaPv, ))
SAME_AS_FREE(_ZdlPvRKSt9nothrow_t)
SAME_AS_FREE(_ZdaPvRKSt9nothrow_t)
SAME_AS_FREE(_ZdlPvSt11align_val_t)
SAME_AS_FREE(_ZdaPvSt11align_val_t)
SAME_AS_FREE(MACHINE_OF_SIZE(_ZdlPv, St11align_val_t))
SAME_AS_FREE(MACHINE_OF_SIZE(_ZdaPv, St11align_val_t))
SAME_AS_FREE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
SAME_AS_FREE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

/* --- where nothing is counted, or little: only handed on -------------------------------------- */

/* Hardly anything is picked. */
static void *malloc_sampled(size_t size) {
    return LIKELY(sampled_mode_skip(size)) ? real.malloc(size) : malloc_slow(size);
}

static void free_sampled(void *pointer) {
    if (LIKELY(!sampled_heap_may_hold(machine_untagged(pointer)))) {
        real.free(pointer);
    } else {
        free_slow(pointer);
    }
}

/* A block that was counted exactly is not in that filter. */
static void free_sampled_again(void *pointer) {
    if (LIKELY(event_is_unknown(machine_untagged(pointer)))) {
        real.free(pointer);
    } else {
        free_slow(pointer);
    }
}

/* A thread that is not known yet may be a forked child's: its header is another. */
INLINE int fast_is_stopped(void) {
    return LIKELY(thread_self->gate == GATE_STOPPED);
}

static void *malloc_stopped(size_t size) {
    return fast_is_stopped() && LIKELY(!switch_is_asked()) ? real.malloc(size) : malloc_slow(size);
}

/* What was counted is followed; the early arena's blocks are said to be sampled. */
static void free_stopped(void *pointer) {
    if (fast_is_stopped() && LIKELY(event_is_unknown(machine_untagged(pointer)))) {
        real.free(pointer);
    } else {
        free_slow(pointer);
    }
}

static void free_off(void *pointer) {
    if (LIKELY(!real_is_early(pointer))) {
        real.free(pointer);
    }
}

/* AddressSanitizer walks its caller's stack by frame pointers, which the fast halves do not have.
 */
void malloc_prepare(enum malloc_way way) {
    int is_exact = way == MALLOC_EXACT;
    int is_sampled = way == MALLOC_SAMPLED || way == MALLOC_SAMPLED_AGAIN;
    void *(*allocate)(size_t) = is_sampled              ? malloc_sampled
                                : way == MALLOC_STOPPED ? malloc_stopped
                                : way == MALLOC_OFF     ? real.malloc
                                                        : malloc_slow;
    void (*release)(void *) = way == MALLOC_SAMPLED         ? free_sampled
                              : way == MALLOC_SAMPLED_AGAIN ? free_sampled_again
                              : way == MALLOC_STOPPED       ? free_stopped
                              : way == MALLOC_OFF           ? free_off
                                                            : free_slow;
    STORE_RELAXED(&real.other_malloc, (intptr_t)((uintptr_t)allocate - (uintptr_t)malloc_slow));
    STORE_RELAXED(&real.other_free, (intptr_t)((uintptr_t)release - (uintptr_t)free_slow));
    STORE_RELAXED(&real.small_limit, (size_t)(is_exact && __asan_init == NULL ? REAL_SMALL : 0));
    STORE_RELAXED(&real_free_limit, is_exact ? REAL_ADDRESSES : 0);
}
