/* SPDX-License-Identifier: MIT */
/* step.h: from a frame to its caller, by rule. */
#ifndef RUNTIME_STACK_STEP_H
#define RUNTIME_STACK_STEP_H

#include "runtime/machine/machine.h"
#include "runtime/stack/bounds.h"
#include "runtime/stack/rule.h"

/* A frame, seen from its callee: it goes on at pc, which was read at `slot`; fp is its frame
 * pointer. Its stack pointer is slot + 8. */
struct frame {
    uintptr_t pc; /* RULE_EXACT set: an interrupted instruction */
    uintptr_t slot;
    uintptr_t fp;
};

enum step {
    STEP_SURE,   /* a function of the frame's pc, slot and fp, and of the words read */
    STEP_UNSURE, /* of more than these */
    STEP_END,
    STEP_LOST
};

/* --- what depends on where calls leave return addresses: the two functions below ---------------
 */

/* The stack pointer with which the frame goes on, its callee's CFA: right above the return address
 * that the call pushed. (A machine whose calls push nothing keeps it in struct frame.) */
INLINE uintptr_t frame_sp(uintptr_t slot) {
    return slot + sizeof(uintptr_t);
}

/* Where the return address lies in a frame with this CFA. */
INLINE uintptr_t step_return_slot(uintptr_t cfa) {
    return cfa - sizeof(uintptr_t);
}

INLINE uintptr_t step_cfa(struct rule rule, const struct frame *from) {
    return ((rule.kind & RULE_FP) == 0 ? frame_sp(from->slot) : from->fp) +
           (uintptr_t)(intptr_t)rule.cfa_offset * sizeof(uintptr_t);
}

/* From a kernel signal frame, whose handler returns by this slot: every register lies in memory. */
INLINE void step_from_signal(uintptr_t slot, struct frame *to) {
    uintptr_t context = frame_sp(slot);
    to->pc = stack_load(context + MACHINE_SIGNAL_PC) | RULE_EXACT;
    to->fp = stack_load(context + MACHINE_SIGNAL_FP);
    /* No return slot holds this pc; its place is the word below the interrupted stack pointer. */
    to->slot = step_return_slot(stack_load(context + MACHINE_SIGNAL_SP));
}

/* The place of a word that lies so many words from a frame's stack pointer. */
INLINE uintptr_t frame_place(uintptr_t slot, intptr_t words) {
    return frame_sp(slot) + (uintptr_t)words * sizeof(uintptr_t);
}

/* The steps that are no plain offsets, or lead through words that must be asked for. */
enum step step_slow(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                    const struct frame *from, struct frame *to);

/* One frame outwards by a plain rule that leads further out on the thread's own stack, which ends
 * at `high`, as nearly all do: what lies between a frame and the next can be read. 0: it does not.
 * (Where a rule by sp leads is known when it is made: leads_out() in rule.c.) */
INLINE int step_plainly(uintptr_t high, struct rule rule, const struct frame *from,
                        struct frame *to) {
    uintptr_t cfa = step_cfa(rule, from);
    uintptr_t slot = step_return_slot(cfa);
    uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
    if (UNLIKELY(slot >= high)) {
        return 0;
    }
    if ((rule.kind & RULE_FP) != 0 &&
        UNLIKELY(slot <= from->slot || slot % sizeof(uintptr_t) != 0 ||
                 place <= from->slot)) { /* fp_offset is negative */
        return 0;
    }
    to->slot = slot;
    to->pc = stack_load(slot);
    to->fp = rule.fp_offset != 0 ? stack_load(place) : from->fp;
    return 1;
}

/* One frame outwards. */
INLINE enum step step(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                      const struct frame *from, struct frame *to) {
    return LIKELY(rule.plain && from->slot >= stack->low &&
                  step_plainly(stack->high, rule, from, to))
               ? STEP_SURE
               : step_slow(rules, stack, rule, from, to);
}

#endif
