/* SPDX-License-Identifier: MIT */
/*
 * linked.h: what machines have in common whose calls leave the return address in a register, and
 * whose processors may change the order of what they store: all but x86-64. Included by their
 * headers, which have MACHINE_SIGNAL_LINK (where the kernel's signal frame has that register) and
 * machine_plain(); the first part also by assembly.
 */
#ifndef RUNTIME_MACHINE_LINKED_H
#define RUNTIME_MACHINE_LINKED_H

/* Where there are no guards noguards.S stands in their place. */
#ifndef MACHINE_GUARD_CELL
#define MACHINE_GUARD_CELL 16
#endif
#ifndef MACHINE_GUARD_COUNT
#define MACHINE_GUARD_COUNT 1
#endif

#ifndef __ASSEMBLER__
#include "runtime/base/compiler.h"

#include <stdint.h>

/* --- counters --------------------------------------------------------------------------------- */

/* One writer, but a handler on its thread may add in between: so in one atomic step. Who reads them
 * while they change (heap/peak.c, the collector) relies on their order, which x86-64 keeps by
 * itself: an addition is seen after all that its thread stored before. */
INLINE void counter_add(uint64_t *counter, uint64_t value) {
    __atomic_fetch_add(counter, value, __ATOMIC_RELEASE);
}

/* The same, down. 1: it was smaller, and is now what it was plus 2^64 minus `value`. */
INLINE int counter_take(uint64_t *counter, uint64_t value) {
    return __atomic_fetch_sub(counter, value, __ATOMIC_RELEASE) < value;
}

INLINE void counter_increment(uint32_t *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELEASE);
}

INLINE int machine_is_less(int64_t a, const int64_t *b) {
    return a < LOAD_RELAXED(b);
}

INLINE int machine_is_greater(int64_t a, const int64_t *b) {
    return a > LOAD_RELAXED(b);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* A header that keeps more of a frame (MACHINE_HAS_SECOND_FP) has these itself. */
#ifndef MACHINE_HAS_SECOND_FP
struct machine_sp {
    uintptr_t value; /* 0: not known */
    uintptr_t link;  /* of an interrupted frame: where its return address lies; else 0 */
};

INLINE struct machine_sp machine_keep_sp(uintptr_t sp) {
    return (struct machine_sp){sp, 0};
}

INLINE int machine_same_sp(struct machine_sp a, struct machine_sp b) {
    return a.value == b.value;
}

INLINE struct machine_sp machine_interrupted_sp(uintptr_t frame, uintptr_t sp) {
    return (struct machine_sp){sp, frame + MACHINE_SIGNAL_LINK};
}
#endif

INLINE uintptr_t machine_sp(uintptr_t slot, struct machine_sp kept) {
    (void)slot;
    return kept.value;
}

INLINE uintptr_t machine_link(struct machine_sp kept) {
    return kept.link;
}

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

/* The stack pointer with which the caller goes on: where the functions of the runtime keep the
 * return address differs. */
#define MACHINE_PLACE()           ((uintptr_t)__builtin_dwarf_cfa())
#define MACHINE_RETURNS_TO(place) machine_plain((uintptr_t)__builtin_return_address(0))

INLINE uintptr_t machine_place_of(uintptr_t slot, struct machine_sp kept) {
    (void)slot;
    return kept.value;
}

/* A shadow stack (Zicfiss) is not asked for where there are no guards that it could meet. */
#ifndef MACHINE_ASKS_SHADOW_STACK
INLINE int machine_has_shadow_stack(long (*call)(long, long, long, long, long, long, long)) {
    (void)call;
    return 0;
}
#endif

#endif
#endif
