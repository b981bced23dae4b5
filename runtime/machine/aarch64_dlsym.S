/* SPDX-License-Identifier: MIT */
/*
 * aarch64_dlsym.S: dlsym and dlvsym, for glibc as a shared library. They find out who called them by
 * their return address: called by a jump, they have that of their caller, which may be a guard
 * (stack/guard.h). The address itself is put back, before the real function is entered by a jump.
 */
#include "runtime/machine/aarch64.h"

    .text
    .macro  enter_real name
    .globl  \name
    .type   \name, %function
    .hidden real_\name
    .hidden real_find_\name
\name:
    .cfi_startproc
    adrp    x16, memtrace_guard
    add     x16, x16, :lo12:memtrace_guard
    sub     x16, x30, x16
    mov     x17, #MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL
    cmp     x16, x17
    b.hs    1f
    lsr     x16, x16, #4
    adrp    x17, guard_table
    add     x17, x17, :lo12:guard_table
    ldr     x30, [x17, x16, lsl #3]
1:
    adrp    x16, real_\name
    ldr     x16, [x16, :lo12:real_\name]
    cbz     x16, 2f
    br      x16
2:
    stp     x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset x29, -48
    .cfi_offset x30, -40
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    bl      real_find_\name
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldr     x2, [sp, #32]
    ldp     x29, x30, [sp], #48
    .cfi_restore x30
    .cfi_restore x29
    .cfi_def_cfa_offset 0
    cbz     x16, 3f
    br      x16
3:
    mov     x0, #0
    ret
    .cfi_endproc
    .size   \name, . - \name
    .endm

    .hidden memtrace_guard
    .hidden guard_table
    enter_real dlsym
    enter_real dlvsym
    .section .note.GNU-stack, "", %progbits
