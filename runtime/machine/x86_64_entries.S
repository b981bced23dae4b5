/* SPDX-License-Identifier: MIT */
/*
 * x86_64_entries.S: functions of the C library's names that must have no frame.
 *
 * dlsym and dlvsym, which find out who called them by their return address: called by a jump, they
 * have their caller's return slot, where a guard may stand (stack/guard.h). The address itself is
 * put back, before the real function is entered by a jump.
 */
#include "runtime/machine/x86_64.h"

#include <sys/syscall.h>

    .text
    .macro  enter_real name
    .globl  \name
    .type   \name, @function
    .hidden real_\name
    .hidden real_find_\name
\name:
    .cfi_startproc
    mov     (%rsp), %rax
    lea     memtrace_guard(%rip), %r11
    sub     %r11, %rax
    cmp     $MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL, %rax
    jae     1f
    shr     $4, %rax
    lea     guard_table(%rip), %r11
    mov     (%r11, %rax, 8), %rax
    mov     %rax, (%rsp)
1:
    mov     real_\name(%rip), %rax
    test    %rax, %rax
    jz      2f
    jmp     *%rax
2:
    push    %rdi
    .cfi_adjust_cfa_offset 8
    push    %rsi
    .cfi_adjust_cfa_offset 8
    push    %rdx
    .cfi_adjust_cfa_offset 8
    call    real_find_\name
    pop     %rdx
    .cfi_adjust_cfa_offset -8
    pop     %rsi
    .cfi_adjust_cfa_offset -8
    pop     %rdi
    .cfi_adjust_cfa_offset -8
    test    %rax, %rax
    jz      3f
    jmp     *%rax
3:
    ret
    .cfi_endproc
    .size   \name, . - \name
    .endm

    enter_real dlsym
    enter_real dlvsym

/*
 * syscall: of seccomp(2) we want to know (entry/seccomp.c). All others are made right here: some of
 * them return twice, or on another stack.
 */
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
