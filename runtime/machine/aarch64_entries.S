/* SPDX-License-Identifier: MIT */
/*
 * aarch64_entries.S: syscall, as the C library's. Of seccomp(2) we want to know (process/seccomp.c).
 * All others are made right here: some of them return twice, or on another stack, so there must be
 * no frame.
 */
#include <sys/syscall.h>

    .text
    .globl  syscall
    .type   syscall, %function
    .hidden seccomp_by_syscall
    .hidden seccomp_result
syscall:
    .cfi_startproc
    cmp     x0, #SYS_seccomp
    b.eq    seccomp_by_syscall
    mov     x8, x0
    mov     x0, x1
    mov     x1, x2
    mov     x2, x3
    mov     x3, x4
    mov     x4, x5
    mov     x5, x6
    svc     #0
    cmn     x0, #4095
    b.hs    seccomp_result
    ret
    .cfi_endproc
    .size   syscall, . - syscall
    .section .note.GNU-stack, "", %progbits
