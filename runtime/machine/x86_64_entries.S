/* SPDX-License-Identifier: MIT */
/*
 * x86_64_entries.S: syscall, as the C library's. Of seccomp(2) we want to know (process/seccomp.c). All
 * others are made right here: some of them return twice, or on another stack, so there must be no
 * frame.
 */
#include <sys/syscall.h>

    .text
    .globl  syscall
    .type   syscall, @function
    .hidden seccomp_by_syscall
    .hidden seccomp_result
syscall:
    .cfi_startproc
    cmp     $SYS_seccomp, %rdi
    je      seccomp_by_syscall
    mov     %rdi, %rax
    mov     %rsi, %rdi
    mov     %rdx, %rsi
    mov     %rcx, %rdx
    mov     %r8, %r10
    mov     %r9, %r8
    mov     8(%rsp), %r9
    syscall
    cmp     $-4095, %rax
    jae     1f
    ret
1:
    mov     %rax, %rdi
    jmp     seccomp_result
    .cfi_endproc
    .size   syscall, . - syscall
    .section .note.GNU-stack, "", %progbits
