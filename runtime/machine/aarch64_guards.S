/* SPDX-License-Identifier: MIT */
/*
 * aarch64_guards.S: the guards' code. See stack/guard.h.
 *
 * A cell is 16 bytes: the return address is loaded from its place of the table and returned by; then
 * comes the distance from the cell to that place. x30 is where a function has its return address
 * when it leaves, so that it becomes what it would be without the guard, and no other register is
 * touched. The jump is a ret: behind a call, no other may land in code that asks for landing pads
 * (BTI).
 *
 * The call frame information has two kinds of rows, since a signal may interrupt either instruction.
 * At the first, and for who was led here by a return slot, x30 is the cell's address (perhaps
 * signed, by a function that was entered by a jump: bits 48 and up), and the return address lies at
 *     cell + *(uint64_t *)(cell + 8)
 * At the second x30 holds it. Only operations that every unwinder knows. A return address is looked
 * up as pc - 1, for which the distance stands before the next cell, and a cell before the first one.
 * The rows are in pieces of 64 cells, so that nobody has to read all of them.
 */
#include "runtime/machine/aarch64.h"

#define CELLS_TOGETHER 64

    /* DW_CFA_expression, register 30, 11 bytes: DW_OP_breg30 0, DW_OP_lit16, DW_OP_shl, DW_OP_lit16,
     * DW_OP_shr, DW_OP_dup, DW_OP_plus_uconst 8, DW_OP_deref, DW_OP_plus. */
    .macro begin_cells
    .cfi_startproc
    .cfi_def_cfa sp, 0
    .cfi_escape 0x10, 30, 11, 0x8e, 0, 0x40, 0x24, 0x40, 0x25, 0x12, 0x23, 8, 0x06, 0x22
    .endm

    .section .text_guards, "ax", %progbits
    .balign MACHINE_GUARD_CELL
    .type   guard_before, %function
guard_before:
    begin_cells
    .fill   MACHINE_GUARD_CELL / 4, 4, 0xd4200000 /* brk #0 */
    .cfi_endproc
    .size   guard_before, . - guard_before
    .globl  memtrace_guard
    .hidden memtrace_guard
    .hidden guard_table
    .type   memtrace_guard, %function
memtrace_guard:
    .set    number, 0
    .rept   MACHINE_GUARD_COUNT / CELLS_TOGETHER
    begin_cells
    .rept   CELLS_TOGETHER
1:
    .cfi_remember_state
    ldr     x30, guard_table + 8 * number
    .cfi_same_value x30
    ret
    .cfi_restore_state
    .xword  guard_table + 8 * number - 1b
    .set    number, number + 1
    .endr
    .cfi_endproc
    .endr
    .size   memtrace_guard, . - memtrace_guard
    .section .note.GNU-stack, "", %progbits
