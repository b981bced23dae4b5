/* SPDX-License-Identifier: MIT */
/* step.h: from a frame to its caller, by rule. */
#ifndef RUNTIME_STACK_STEP_H
#define RUNTIME_STACK_STEP_H

#include "runtime/base/sys.h"
#include "runtime/stack/rule.h"

/* A frame, seen from its callee: it goes on at pc, which was read at `slot`; fp is its frame
 * pointer. Its stack pointer is slot + 8. */
struct frame {
    uintptr_t pc; /* RULE_EXACT set: an interrupted instruction */
    uintptr_t slot;
    uintptr_t fp;
};

/* The stack that the stepping thread may read without asking. */
struct stack_bounds {
    uintptr_t low, high; /* high 0: not known */
    uintptr_t entry;     /* where the kernel set the stack pointer at the start; 0: elsewhere */
};

enum step {
    STEP_SURE,   /* a function of the frame's pc, slot and fp, and of the words read */
    STEP_UNSURE, /* of more than these */
    STEP_END,
    STEP_LOST
};

/* Rules that are no plain offsets. */
enum step step_slow(struct rules *rules, const struct stack_bounds *stack, struct rule rule,
                    const struct frame *from, struct frame *to);

INLINE uintptr_t stack_load(uintptr_t address) {
    return *(const uintptr_t *)address;
}

INLINE int stack_holds(const struct stack_bounds *stack, uintptr_t address) {
    return address >= stack->low && address < stack->high;
}

/* Words of the thread's own stack above the present frame can be read; elsewhere (fibers, signal
 * stacks, threads that others made) the kernel is asked first. */
INLINE int stack_can_read(const struct stack_bounds *stack, uintptr_t address) {
    return address % sizeof(uintptr_t) == 0 &&
           (LIKELY(stack_holds(stack, address)) || sys_readable((const void *)address));
}

INLINE uintptr_t step_cfa(struct rule rule, const struct frame *from) {
    return (rule.kind == RULE_SP ? from->slot + sizeof(uintptr_t) : from->fp) +
           (uintptr_t)(intptr_t)rule.cfa_offset * sizeof(uintptr_t);
}

/* One frame outwards. */
INLINE enum step step(struct rules *rules, const struct stack_bounds *stack, struct rule rule,
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
