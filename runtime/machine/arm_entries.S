/* SPDX-License-Identifier: MIT */
/*
 * arm_entries.S: syscall, as the C library's. Of seccomp(2) we want to know (process/seccomp.c). All
 * others are made right here: some of them return twice, or on another stack. (dlsym stays the C
 * library's: there are no guards that it could meet.)
 */
#include <sys/syscall.h>

    .syntax unified
    .arm
    .text
    .globl  syscall
    .type   syscall, %function
    .hidden seccomp_by_syscall
    .hidden seccomp_result
syscall:
    .fnstart
    movw    ip, #SYS_seccomp
    cmp     r0, ip
    beq     seccomp_by_syscall
    mov     ip, sp
    push    {r4-r7}
    .save   {r4-r7}
    mov     r7, r0
    mov     r0, r1
    mov     r1, r2
    mov     r2, r3
    ldm     ip, {r3-r6}
    svc     #0
    pop     {r4-r7}
    cmn     r0, #4096
    bhi     seccomp_result
    bx      lr
    .fnend
    .size   syscall, . - syscall
    .section .note.GNU-stack, "", %progbits
