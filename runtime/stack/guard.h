/* SPDX-License-Identifier: MIT */
/*
 * guard.h: return-address patching. A guard stands in for a return address on the stack: while it
 * is there the function that would return by it has not, so nothing older has changed, and a walk
 * that meets it need not look.
 *
 * Guards keep no state. Guard i is code that jumps to return address i, for good: to
 * return by it is to return to the address itself, whoever does it and however often. So nothing
 * must be undone when a frame is left by another door (longjmp, an exception, a fiber that never
 * goes on), nor when a stack is copied, moves to another thread, or is inherited by a forked child;
 * and there is no state in which the program could be lost. Every register is preserved: none
 * is touched but, where a call leaves the return address in one, that, to become what it would be.
 * Unwinders step through: the guards' CFI says that the return address of the "frame" lies in the
 * table. docs/unwinding.md says what each of them shows.
 */
#ifndef RUNTIME_STACK_GUARD_H
#define RUNTIME_STACK_GUARD_H

#include "runtime/base/compiler.h"
#include "runtime/machine/machine.h"

#include <stdint.h>

extern HIDDEN const unsigned char memtrace_guard[];       /* cells of code */
extern HIDDEN uintptr_t guard_table[MACHINE_GUARD_COUNT]; /* where each jumps to; 0: not used yet */

/* The guard for return address pc; 0: there is no place left for it. Any thread, any time. */
uintptr_t guard_for(uintptr_t pc);

INLINE int guard_is(uint64_t pc) {
    return pc - (uintptr_t)memtrace_guard < (uintptr_t)MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL;
}

/* What `pc`, read from a return slot, stands for. */
INLINE uint64_t guard_see_through(uint64_t pc) {
    return LIKELY(!guard_is(pc))
               ? pc
               : LOAD_RELAXED(&guard_table[(pc - (uintptr_t)memtrace_guard) / MACHINE_GUARD_CELL]);
}

/* For a function that looks at who called it: entered by a jump, it has its caller's return slot,
 * or return address, which may be a guard. Puts the address itself back and returns it; `frame`:
 * its MACHINE_FRAME(). */
INLINE uintptr_t guard_restore(uintptr_t frame) {
    uintptr_t *slot = (uintptr_t *)machine_frame_record(frame) + 1;
    uintptr_t caller = guard_see_through(machine_plain(*slot));
    if (MACHINE_HAS_GUARDS && (!MACHINE_MAY_SIGN || guard_is(*slot))) {
        *slot = caller;
    }
    return caller;
}

#endif
