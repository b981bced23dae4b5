/* SPDX-License-Identifier: MIT */
/*
 * x86_64_guards.S: the guards' code. See stack/guard.h.
 *
 * A cell is 16 bytes: a jump to the address in its place of the table, and the distance from the
 * cell to that place. The call frame information of all cells is one row: a cell is "called" with
 * nothing on the stack (CFA = rsp), and its return address lies at
 *     cell + *(uint64_t *)(cell + 8)
 * where the cell's own address is what was read as the return address into it (DWARF register 16).
 * Only operations that every unwinder knows: not all have DW_OP_deref_size.
 * A return address is looked up as pc - 1, for which a cell stands before the first one.
 */
#include "runtime/machine/x86_64.h"

    /* Apart from the other code: between its parts these 256 KiB would spread it over more pages. */
    .section .text_guards, "ax", %progbits
    .balign MACHINE_GUARD_CELL
    .type   guard_before, @function
guard_before:
    .cfi_startproc
    .cfi_def_cfa rsp, 0
    /* DW_CFA_expression, register 16, 6 bytes: DW_OP_breg16 8, DW_OP_deref, DW_OP_breg16 0,
     * DW_OP_plus. */
    .cfi_escape 0x10, 0x10, 6, 0x80, 8, 0x06, 0x80, 0, 0x22
    .fill   MACHINE_GUARD_CELL, 1, 0xcc
    .size   guard_before, . - guard_before
    .globl  memtrace_guard
    .hidden memtrace_guard
    .type   memtrace_guard, @function
memtrace_guard:
    .set    number, 0
    .rept   MACHINE_GUARD_COUNT
1:
    jmp     *guard_table + 8 * number(%rip)
    .fill   8 - (. - 1b), 1, 0xcc
    .quad   guard_table + 8 * number - 1b
    .set    number, number + 1
    .endr
    .cfi_endproc
    .size   memtrace_guard, . - memtrace_guard
    .section .note.GNU-stack, "", %progbits
