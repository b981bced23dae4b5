/* SPDX-License-Identifier: MIT */
/* step.c: the steps that a compact rule alone cannot take. See step.h. */
#include "runtime/stack/step.h"

#include "runtime/base/sys.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/cfi.h"
#include "runtime/stack/jit.h"

static int register_value(struct stack_bounds *stack, const struct cfi_register *reg,
                          const struct expression_machine *machine, uintptr_t cfa,
                          uintptr_t *value) {
    uintptr_t address = cfa + (uintptr_t)reg->offset;
    switch (reg->place) {
    case CFI_UNCHANGED:
        return 0;
    case CFI_EXPRESSION:
        if (expression_evaluate(reg->expression, machine, &cfa, &address) != 0) {
            return -1;
        }
        break;
    case CFI_OFFSET:
        break;
    default:
        return -1;
    }
    if (!stack_can_read(stack, address)) {
        return -1;
    }
    *value = stack_load(address);
    return 0;
}

/* From an interrupted frame whose function has not saved its return address. */
static int step_by_link(struct stack_bounds *stack, const struct frame *from, struct frame *to) {
    uintptr_t link = machine_link(from->sp);
    if (link == 0 || !stack_can_read(stack, link)) {
        return -1;
    }
    to->pc = machine_plain(stack_load(link));
    return 0;
}

static COLD int step_interpreted(struct rules *rules, struct stack_bounds *stack,
                                 const struct frame *from, struct frame *to) {
    struct expression_machine machine = {from->pc & ~RULE_EXACT, frame_sp(from->slot, from->sp),
                                         from->fp};
    uintptr_t second_fp = machine_second_fp(from->sp);
    uintptr_t address = machine.pc - ((from->pc & RULE_EXACT) == 0);
    struct module_place place;
    struct cfi_row row;
    uintptr_t cfa;
    uintptr_t pc = 0;
    if (module_find(rules->modules, address, &place) != 0
            ? jit_find(address, &row) != 0
            : rule_find_row(rules, &place, address, &row) != 0 &&
                  rule_find_row(rules, &place, machine.pc, &row) != 0) {
        return -1;
    }
    if (row.cfa_expression != NULL) {
        if (expression_evaluate(row.cfa_expression, &machine, NULL, &cfa) != 0) {
            return -1;
        }
    } else if (row.cfa_register == MACHINE_DWARF_SP || row.cfa_register == MACHINE_DWARF_FP) {
        cfa = (row.cfa_register == MACHINE_DWARF_SP ? machine.sp : machine.fp) +
              (uintptr_t)row.cfa_offset;
    } else if (MACHINE_HAS_SECOND_FP && row.cfa_register == MACHINE_DWARF_SECOND_FP) {
        cfa = machine_second_fp(from->sp) + (uintptr_t)row.cfa_offset;
    } else {
        return -1;
    }
    to->fp = from->fp;
    to->slot = step_return_slot(cfa);
    if (row.frame_pointer.place != CFI_UNSUPPORTED &&
        register_value(stack, &row.frame_pointer, &machine, cfa, &to->fp) != 0) {
        return -1;
    }
    if (MACHINE_HAS_SECOND_FP && row.second_frame_pointer.place != CFI_UNSUPPORTED &&
        register_value(stack, &row.second_frame_pointer, &machine, cfa, &second_fp) != 0) {
        return -1;
    }
    to->sp = machine_keep_both(cfa, second_fp);
    if (row.return_address.place == CFI_UNCHANGED) {
        return step_by_link(stack, from, to);
    }
    if (!MACHINE_CALL_PUSHES && row.return_address.place == CFI_OFFSET) {
        to->slot = cfa + (uintptr_t)row.return_address.offset;
    }
    if (register_value(stack, &row.return_address, &machine, cfa, &pc) != 0) {
        return -1;
    }
    to->pc = machine_plain(pc);
    return 0;
}

/* --- Go ----------------------------------------------------------------------------------------
 *
 * Its tables are compressed, and say nothing of stacks that are switched. But nearly all of its
 * functions keep fp, also those that move from a goroutine's stack to the thread's and back, and 0
 * there marks a stack's outermost frame (https://go.dev/s/regabi; on amd64 since Go 1.7, in
 * runtime.asmcgocall and runtime.systemstack since 1.21; where C called the outermost function
 * since 1.26, before that go_table.h tells).
 */

/* From runtime.asmcgocall, which called C, to its caller on the goroutine's stack, which goes on
 * there: no need to ask what of it can be read. 0: that is not where `from` is. */
static int step_from_c(struct stack_bounds *stack, const struct frame *from, struct frame *to) {
    struct machine_way_back way;
    uintptr_t sp = frame_sp(from->slot, from->sp);
    uintptr_t high;
    if (!MACHINE_KNOWS_GO || !machine_read_way_back(from->pc, from->pc + MACHINE_WAY_BACK, &way)) {
        return 0;
    }
    high = stack_load(stack_load(sp + way.goroutine) + way.high);
    sp = high - stack_load(sp + way.depth);
    to->slot = sp + way.slot;
    stack_believe(stack, to->slot - sizeof(uintptr_t), high);
    to->pc = stack_load(to->slot);
    to->sp = machine_keep_sp(0);
    if (way.saves_fp) {
        to->fp = stack_load(to->slot - sizeof(uintptr_t));
    } else { /* still its caller's, unless the stack was moved */
        to->fp = from->fp > sp && from->fp < high ? from->fp : 0;
    }
    return 1;
}

static int can_read_two(struct stack_bounds *stack, uintptr_t at) {
    return stack_can_read(stack, at) && stack_can_read(stack, at + sizeof(uintptr_t));
}

/* From crosscall2, by which C had entered Go, to C. 0: that is not where `from` is. */
static int step_to_c(struct rules *rules, struct stack_bounds *stack, const struct frame *from,
                     struct frame *to) {
    uintptr_t sp = frame_sp(from->slot, from->sp);
    struct module_place place;
    struct machine_way_out way;
    if (MACHINE_CALL_PUSHES || !MACHINE_KNOWS_GO ||
        module_find(rules->modules, from->pc - 1, &place) != 0 ||
        !machine_read_way_out(from->pc, place.end, &way) || !can_read_two(stack, sp + way.fp)) {
        return 0;
    }
    to->fp = stack_load(sp + way.fp);
    to->slot = sp + way.fp + sizeof(uintptr_t);
    to->pc = machine_plain(stack_load(to->slot));
    to->sp = machine_keep_sp(sp + way.size);
    return 1;
}

/* How far above its return address the frame of Go's function ends; 0: that is not told. */
static uintptr_t go_frame(struct rules *rules, uintptr_t pc) {
    struct module_place place;
    pc &= ~RULE_EXACT;
    return !MACHINE_CALL_PUSHES && MACHINE_KNOWS_GO &&
                   module_find(rules->modules, pc - 1, &place) == 0
               ? machine_go_frame(pc, place.end)
               : 0;
}

/* The stack pointer of what the function returns to, if that is crosscall2, which does not keep it
 * in fp; else 0. */
static uintptr_t step_sp_of_entry(struct rules *rules, uintptr_t pc, uintptr_t slot, uintptr_t to) {
    struct module_place place;
    struct machine_way_out way;
    uintptr_t size;
    if (MACHINE_CALL_PUSHES || !MACHINE_KNOWS_GO ||
        module_find(rules->modules, to - 1, &place) != 0 ||
        !machine_read_way_out(to, place.end, &way)) {
        return 0;
    }
    size = go_frame(rules, pc);
    return size != 0 ? slot + size : 0;
}

static COLD int step_by_go(struct rules *rules, struct stack_bounds *stack, int may_call_c,
                           const struct frame *from, struct frame *to) {
    struct module_place place;
    uintptr_t record = from->fp;
    if ((may_call_c && step_from_c(stack, from, to)) ||
        (machine_same_sp(from->sp, machine_keep_sp(0)) == 0 && step_to_c(rules, stack, from, to))) {
        return 0;
    }
    if (record == 0) {
        to->pc = 0;
        return 0;
    }
    if (!can_read_two(stack, record)) {
        return -1;
    }
    if (MACHINE_CALL_PUSHES && stack_load(record) == record + sizeof(uintptr_t)) {
        record += sizeof(uintptr_t); /* runtime.crosscall2 keeps it twice, side by side */
        if (!can_read_two(stack, record)) {
            return -1;
        }
    }
    to->fp = stack_load(record);
    /* On AArch64 asmcgocall writes its sp over it where it was on the thread's stack already; but
     * fp is always a word below sp there. */
    if (!MACHINE_CALL_PUSHES && to->fp == record + sizeof(uintptr_t)) {
        to->fp = record + go_frame(rules, from->pc);
    }
    to->slot = record + sizeof(uintptr_t);
    to->pc = stack_load(to->slot);
    to->sp = machine_keep_sp(step_sp_of_entry(rules, from->pc, to->slot, to->pc));
    return to->pc == 0 || rule_find(rules, to->pc).kind != RULE_UNKNOWN ||
                   module_find(rules->modules, to->pc - 1, &place) == 0
               ? 0
               : -1;
}

/* Code without tables, whose first instructions tell what it saved: a guess, if what that leads to
 * was called. (Only of Thumb code, to which the return address leads by an odd number.) */
static int step_by_prologue(struct rules *rules, struct stack_bounds *stack,
                            const struct frame *from, struct frame *to) {
    uintptr_t pc = (uintptr_t)from->pc;
    uintptr_t sp = frame_sp(from->slot, from->sp);
    struct machine_prologue code;
    struct module_place place;
    struct rule rule = {.kind = RULE_SP};
    uintptr_t low = pc - MACHINE_PROLOGUE;
    if ((from->pc & RULE_EXACT) != 0 || !stack_can_read(stack, from->slot) ||
        stack_load(from->slot) != (pc | 1) || module_find(rules->modules, pc, &place) != 0) {
        return -1;
    }
    low = low > place.start && sys_readable((const void *)low) ? low : pc & ~(uintptr_t)4095;
    if (!MACHINE_READS_PROLOGUES || !machine_read_prologue(pc, low, &code) ||
        code.fp_below > RULE_SAVED_FP || !stack_can_read(stack, sp) ||
        !stack_can_read(stack, sp + code.slot * sizeof(uintptr_t))) {
        return -1;
    }
    rule.frame_word = code.fp_below | code.second_fp_below << RULE_SAVED_SECOND_SHIFT;
    return step_saved(rule, from, sp + code.slot * sizeof(uintptr_t),
                      sp + code.cfa * sizeof(uintptr_t), to) &&
                   module_find(rules->modules, (uintptr_t)to->pc - 1, &place) == 0 &&
                   machine_follows_call((uintptr_t)to->pc)
               ? 0
               : -1;
}

/* No unwind information: the frame pointer may still chain, if what it leads to is code. */
static COLD int step_guessing(struct rules *rules, struct stack_bounds *stack,
                              const struct frame *from, struct frame *to) {
    struct module_place place;
    uintptr_t sp = frame_sp(from->slot, from->sp);
    uintptr_t slot = machine_fp_slot(from->fp);
    uintptr_t record = slot - sizeof(uintptr_t);
    uintptr_t pc = from->pc & ~RULE_EXACT;
    if (stack->entry != 0 && sp >= stack->entry) {
        to->pc = 0; /* the loader's first code, which nobody called and nothing describes */
        return 0;
    }
    if (MACHINE_READS_PROLOGUES && step_by_prologue(rules, stack, from, to) == 0) {
        return 0;
    }
    if (!libc_may_keep_frame_pointers(pc)) {
        return -1; /* nor does the link register tell more than its last call */
    }
    if (step_by_link(stack, from, to) == 0 &&
        module_find(rules->modules, to->pc - 1, &place) == 0 &&
        (MACHINE_GUESSES ||
         (MACHINE_KNOWS_STUBS && sys_readable((const void *)pc) && machine_is_stub(pc)))) {
        to->slot = step_return_slot(sp); /* a linkage stub, which keeps nothing on the stack */
        to->fp = from->fp;
        to->sp = machine_keep_both(sp, machine_second_fp(from->sp));
        return 0;
    }
    if (!MACHINE_GUESSES || !stack_holds(stack, from->slot) || record <= from->slot ||
        !stack_holds(stack, record) || !stack_holds(stack, slot) ||
        record % sizeof(uintptr_t) != 0) {
        return -1;
    }
    to->slot = slot;
    to->pc = machine_plain(stack_load(slot));
    to->fp = stack_load(record);
    to->sp = machine_keep_sp(0);
    return module_find(rules->modules, to->pc - 1, &place) == 0 || jit_holds(to->pc - 1) ? 0 : -1;
}

/* A plain rule, where it must be asked which words are there: fibers, signal stacks, threads that
 * others made, or a stack that is not what the rule takes it for. */
static COLD int step_asking(struct stack_bounds *stack, struct rule rule, const struct frame *from,
                            struct frame *to) {
    uintptr_t cfa = step_cfa(rule, from);
    uintptr_t place;
    to->slot = step_slot(rule, from, cfa);
    if (to->slot <= from->slot || !stack_can_read(stack, to->slot)) {
        return -1;
    }
    if (!MACHINE_CALL_PUSHES) {
        return (rule_saves_fp(rule) && !stack_can_read(stack, to->slot - sizeof(uintptr_t))) ||
                       !step_saved(rule, from, to->slot, cfa, to)
                   ? -1
                   : 0;
    }
    to->pc = stack_load(to->slot);
    place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
    if (rule.fp_offset != 0 && !stack_can_read(stack, place)) {
        return -1;
    }
    to->fp = rule.fp_offset != 0 ? stack_load(place) : from->fp;
    return 0;
}

COLD enum step step_slow(struct rules *rules, struct stack_bounds *stack, struct rule rule,
                         const struct frame *from, struct frame *to) {
    uintptr_t context;
    int failed;
    switch (rule.kind) {
    case RULE_SP:
    case RULE_FP:
        return step_asking(stack, rule, from, to) != 0 ? STEP_LOST : STEP_SURE;
    case RULE_END:
        return STEP_END;
    case RULE_SIGNAL: /* the kernel's frame: every register lies in memory */
        context = machine_signal_registers((uintptr_t)from->pc, frame_sp(from->slot, from->sp));
        failed =
            !stack_can_read(stack, context) || !stack_can_read(stack, context + MACHINE_SIGNAL_PC);
        if (!failed) {
            step_from_signal(from->pc & ~RULE_EXACT, from->slot, from->sp, to);
        }
        break;
    case RULE_SLOW:
        failed = step_interpreted(rules, stack, from, to);
        break;
    case RULE_GO:
        failed = step_by_go(rules, stack, !rule.unpatched, from, to);
        break;
    default:
        failed = step_guessing(rules, stack, from, to);
    }
    return failed ? STEP_LOST : STEP_UNSURE;
}
