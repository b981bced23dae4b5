/* SPDX-License-Identifier: MIT */
/*
 * mips64_entries.S: syscall, as the C library's. Of seccomp(2) we want to know (process/seccomp.c).
 * All others are made right here: some of them return twice, or on another stack, so there must be
 * no frame. $gp is the caller's, and stays; whom we jump to has to find its own address in $t9.
 */
#include <sys/asm.h>
#include <sys/regdef.h>
#include <sys/syscall.h>

/* Jumps to a function of this library; `register` is the address of `label`. */
    .macro  leave_to function, label, register
    lui     v1, %hi(%neg(%gp_rel(\label)))
    daddu   v1, v1, \register
    daddiu  v1, v1, %lo(%neg(%gp_rel(\label)))
    ld      t9, %got_disp(\function)(v1)
    jr      t9
    .endm

    .text
    .set    noreorder
    .globl  syscall
    .type   syscall, @function
    .hidden seccomp_by_syscall
    .hidden seccomp_result
syscall:
    .cfi_startproc
    li      v1, SYS_seccomp
    beq     a0, v1, 1f
    move    v0, a0
    move    a0, a1
    move    a1, a2
    move    a2, a3
    move    a3, a4
    move    a4, a5
    move    a5, a6
    syscall
    bnez    a3, 2f
    dnegu   a0, v0
    jr      ra
    nop
1:
    leave_to seccomp_by_syscall, syscall, t9
    nop
2:
    move    t0, ra
    bal     where_it_failed /* nothing but a call tells where we are: the kernel may change $t9 */
    nop
where_it_failed:
    move    t1, ra
    move    ra, t0
    leave_to seccomp_result, where_it_failed, t1
    nop
    .cfi_endproc
    .size   syscall, . - syscall
    .section .note.GNU-stack, "", @progbits
