/* SPDX-License-Identifier: MIT */
/* step.h: from a frame to its caller, by rule. */
#ifndef RUNTIME_STACK_STEP_H
#define RUNTIME_STACK_STEP_H

#include "runtime/base/machine.h"
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

/* Rules that are no plain offsets. */
enum step step_slow(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                    const struct frame *from, struct frame *to);

/* From a kernel signal frame, whose handler returns by this slot: every register lies in memory. */
INLINE void step_from_signal(uintptr_t slot, struct frame *to) {
    uintptr_t context = slot + sizeof(uintptr_t);
    to->pc = stack_load(context + MACHINE_SIGNAL_PC) | RULE_EXACT;
    to->fp = stack_load(context + MACHINE_SIGNAL_FP);
    /* No return slot holds this pc; its place is the word below the interrupted stack pointer. */
    to->slot = stack_load(context + MACHINE_SIGNAL_SP) - sizeof(uintptr_t);
}

INLINE uintptr_t step_cfa(struct rule rule, const struct frame *from) {
    return (rule.kind == RULE_SP ? from->slot + sizeof(uintptr_t) : from->fp) +
           (uintptr_t)(intptr_t)rule.cfa_offset * sizeof(uintptr_t);
}

/* One frame outwards. */
INLINE enum step step(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                      const struct frame *from, struct frame *to) {
    uintptr_t cfa;
    if (UNLIKELY(!rule.plain) && rule.kind != RULE_SP && rule.kind != RULE_FP) {
        /* Copies, so that only this way keeps frames in memory. */
        struct frame here = *from;
        struct frame next = here;
        enum step how = step_slow(rules, stack, rule, &here, &next);
        *to = next;
        return how;
    }
    cfa = step_cfa(rule, from);
    to->slot = cfa - sizeof(uintptr_t);
    if (UNLIKELY(to->slot <= from->slot || !stack_can_read(stack, to->slot))) {
        return STEP_LOST;
    }
    to->pc = stack_load(to->slot);
    to->fp = from->fp;
    if (rule.fp_offset != 0) {
        uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
        if (UNLIKELY(!stack_can_read(stack, place))) {
            return STEP_LOST;
        }
        to->fp = stack_load(place);
    }
    return STEP_SURE;
}

#endif
