/* SPDX-License-Identifier: MIT */
/*
 * guard_cells.S: the guards' code. See guard.h.
 *
 * A cell is 16 bytes: a jump to the address in its place of the table, and the distance from the
 * cell to that place. The call frame information of all cells is one row: a cell is "called" with
 * nothing on the stack (CFA = rsp), and its return address lies at
 *     cell + *(uint32_t *)(cell + 12)
 * where the cell's own address is what was read as the return address into it (DWARF register 16).
 * A return address is looked up as pc - 1, for which a cell stands before the first one.
 */
#include "runtime/stack/guard_cells.h"

#if defined(__x86_64__)
    .text
    .balign GUARD_CELL
    .type   guard_before, @function
guard_before:
    .cfi_startproc
    .cfi_def_cfa rsp, 0
    /* DW_CFA_expression, register 16, 7 bytes: DW_OP_breg16 12, DW_OP_deref_size 4,
     * DW_OP_breg16 0, DW_OP_plus. */
    .cfi_escape 0x10, 0x10, 7, 0x80, 12, 0x94, 4, 0x80, 0, 0x22
    .fill   GUARD_CELL, 1, 0xcc
    .size   guard_before, . - guard_before
    .globl  memtrace_guard
    .hidden memtrace_guard
    .type   memtrace_guard, @function
memtrace_guard:
    .set    number, 0
    .rept   GUARD_COUNT
1:
    jmp     *guard_table + 8 * number(%rip)
    .fill   12 - (. - 1b), 1, 0xcc
    .long   guard_table + 8 * number - 1b
    .set    number, number + 1
    .endr
    .cfi_endproc
    .size   memtrace_guard, . - memtrace_guard
#else
    /* No guards on this machine: machine_can_patch_returns() says so. */
    .section .rodata
    .globl  memtrace_guard
    .hidden memtrace_guard
memtrace_guard:
    .fill   GUARD_COUNT * GUARD_CELL, 1, 0
#endif
    .section .note.GNU-stack, "", %progbits
