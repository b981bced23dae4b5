/* SPDX-License-Identifier: MIT */
/* step.h: from a frame to its caller, by rule. */
#ifndef RUNTIME_STACK_STEP_H
#define RUNTIME_STACK_STEP_H

#include "runtime/machine/machine.h"
#include "runtime/stack/bounds.h"
#include "runtime/stack/rule.h"

/* A frame, seen from its callee: it goes on at pc, which was read at `slot`; fp is its frame
 * pointer. Its stack pointer is frame_sp(). */
struct frame {
    uint64_t pc; /* RULE_EXACT set: an interrupted instruction */
    uintptr_t slot;
    uintptr_t fp;
    struct machine_sp sp; /* where calls push nothing, so that it does not follow from the slot */
};

enum step {
    STEP_SURE,   /* a function of the frame's pc, slot and fp, and of the words read */
    STEP_UNSURE, /* of more than these */
    STEP_END,
    STEP_LOST
};

/* --- what depends on where calls leave return addresses --------------------------------------- */

/* The stack pointer with which the frame goes on, its callee's CFA. */
INLINE uintptr_t frame_sp(uintptr_t slot, struct machine_sp sp) {
    return machine_sp(slot, sp);
}

/* Where the return address lies in a frame with this CFA, where calls push it; elsewhere the place
 * that frames have which were reached by no saved return address. */
INLINE uintptr_t step_return_slot(uintptr_t cfa) {
    return cfa - sizeof(uintptr_t);
}

INLINE uintptr_t step_by(struct rule rule, const struct frame *from) {
    if (MACHINE_HAS_SECOND_FP && (rule.kind & RULE_FP) != 0 &&
        (rule.frame_word & RULE_BY_SECOND_FP) != 0) {
        return machine_second_fp(from->sp);
    }
    return (rule.kind & RULE_FP) == 0 ? frame_sp(from->slot, from->sp) : from->fp;
}

INLINE uintptr_t step_cfa(struct rule rule, const struct frame *from) {
    return step_by(rule, from) + (uintptr_t)(intptr_t)rule.cfa_offset * sizeof(uintptr_t);
}

/* Where a plain rule says that the return address lies. */
INLINE uintptr_t step_slot(struct rule rule, const struct frame *from, uintptr_t cfa) {
    return MACHINE_CALL_PUSHES ? step_return_slot(cfa)
                               : (rule.fp_offset < 0 ? cfa : step_by(rule, from)) +
                                     (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
}

/* Where the fp of a frame was read, as walk_fp_at() tells: in words from its sp, or from its slot
 * where functions save it beside the return address. */
INLINE uintptr_t frame_fp_place(uintptr_t slot, intptr_t words) {
    return (MACHINE_CALL_PUSHES ? slot + sizeof(uintptr_t) : slot) +
           (uintptr_t)words * sizeof(uintptr_t);
}

/* That number, of the frame that a plain rule leads to; 0: its fp is its callee's. (Where there are
 * two frame pointers: RULE_SAVED_BOTH.) */
INLINE int8_t step_fp_at(struct rule rule) {
    if (MACHINE_HAS_SECOND_FP) {
        return (int8_t)(rule.frame_word & RULE_SAVED_BOTH);
    }
    return MACHINE_CALL_PUSHES ? (int8_t)rule.fp_offset : (int8_t)(rule_saves_fp(rule) ? -1 : 0);
}

/* The same of two frame pointers: how many words below the return address each was read. */
INLINE uint32_t frame_first_fp_below(int8_t fp_at) {
    return (uint8_t)fp_at & RULE_SAVED_FP;
}

INLINE uint32_t frame_second_fp_below(int8_t fp_at) {
    return (uint8_t)fp_at >> RULE_SAVED_SECOND_SHIFT;
}

/* Whether what was read there is still what the frame has. */
INLINE int frame_fps_hold(uintptr_t slot, int8_t fp_at, uintptr_t fp, struct machine_sp sp) {
    uint32_t first = frame_first_fp_below(fp_at);
    uint32_t second = frame_second_fp_below(fp_at);
    return (first == 0 || stack_load(slot - first * sizeof(uintptr_t)) == fp) &&
           (second == 0 || stack_load(slot - second * sizeof(uintptr_t)) == machine_second_fp(sp));
}

/* From a kernel signal frame, whose handler returns by this slot to `pc`: every register lies in
 * memory. */
INLINE void step_from_signal(uintptr_t pc, uintptr_t slot, struct machine_sp sp, struct frame *to) {
    uintptr_t context = machine_signal_registers(pc, frame_sp(slot, sp));
    uintptr_t interrupted = stack_load(context + MACHINE_SIGNAL_SP);
    to->pc = stack_load(context + MACHINE_SIGNAL_PC) | RULE_EXACT;
    to->fp = stack_load(context + MACHINE_SIGNAL_FP);
    /* No return slot holds this pc; its place is the word below the interrupted stack pointer (or
     * the next, where its caller may have that one). */
    to->slot = step_return_slot(interrupted) - (MACHINE_CALL_PUSHES ? 0 : sizeof(uintptr_t));
    to->sp = machine_interrupted_sp(context, interrupted);
}

/* The steps that are no plain offsets, or lead through words that must be asked for. */
enum step step_slow(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                    const struct frame *from, struct frame *to);

/* The caller's frame pointers, where there are two. */
INLINE void step_saved_both(struct rule rule, const struct frame *from, uintptr_t slot,
                            uintptr_t cfa, struct frame *to) {
    uint32_t first = rule_saved_fp(rule);
    uint32_t second = rule_saved_second(rule);
    uintptr_t other =
        second != 0 ? stack_load(slot - second * sizeof(uintptr_t)) : machine_second_fp(from->sp);
    to->fp = first != 0 ? stack_load(slot - first * sizeof(uintptr_t)) : from->fp;
    to->sp = machine_keep_both(cfa, other);
}

/* Where calls push nothing: the return address was saved at `slot`, and fp, if it was, below it. 0:
 * that does not lead outwards (or the stack pointer is not known). */
INLINE int step_saved(struct rule rule, const struct frame *from, uintptr_t slot, uintptr_t cfa,
                      struct frame *to) {
    int saves_fp = rule_saves_fp(rule);
    if (slot <= from->slot || slot % sizeof(uintptr_t) != 0 ||
        slot - (uintptr_t)rule_lowest_saved(rule) * sizeof(uintptr_t) <= from->slot) {
        return 0;
    }
    to->slot = slot;
    to->pc = machine_plain(stack_load(slot));
    if (MACHINE_HAS_SECOND_FP) {
        step_saved_both(rule, from, slot, cfa, to);
        return 1;
    }
    to->fp = saves_fp ? stack_load(slot - sizeof(uintptr_t)) : from->fp;
    to->sp = machine_keep_sp(cfa);
    return 1;
}

/* One frame outwards by a plain rule that leads further out on the thread's own stack, which ends
 * at `high`, as nearly all do: what lies between a frame and the next can be read. 0: it does not.
 * (Where a rule by sp leads is known when it is made: leads_out() in rule.c.) */
INLINE int step_plainly(uintptr_t high, struct rule rule, const struct frame *from,
                        struct frame *to) {
    uintptr_t cfa = step_cfa(rule, from);
    uintptr_t slot = step_slot(rule, from, cfa);
    uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
    if (!MACHINE_CALL_PUSHES) {
        return slot < high && step_saved(rule, from, slot, cfa, to);
    }
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
