/* SPDX-License-Identifier: MIT */
/*
 * riscv64_entries.S: syscall, as the C library's. Of seccomp(2) we want to know (process/seccomp.c).
 * All others are made right here: some of them return twice, or on another stack, so there must be
 * no frame. (dlsym stays the C library's: there are no guards that it could meet.)
 */
#include <sys/syscall.h>

    .text
    .globl  syscall
    .type   syscall, %function
    .hidden seccomp_by_syscall
    .hidden seccomp_result
syscall:
    .cfi_startproc
    li      t0, SYS_seccomp
    beq     a0, t0, 1f
    mv      a7, a0
    mv      a0, a1
    mv      a1, a2
    mv      a2, a3
    mv      a3, a4
    mv      a4, a5
    mv      a5, a6
    ecall
    li      t0, -4095
    bgeu    a0, t0, 2f
    ret
1:
    tail    seccomp_by_syscall
2:
    tail    seccomp_result
    .cfi_endproc
    .size   syscall, . - syscall
    .section .note.GNU-stack, "", %progbits
