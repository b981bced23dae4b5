/* SPDX-License-Identifier: MIT */
/*
 * x86_64_dlsym.S: dlsym and dlvsym, for glibc as a shared library. They find out who called them by
 * their return address: called by a jump, they have their caller's return slot, where a guard may
 * stand (stack/guard.h). The address itself is put back, before the real function is entered by a
 * jump.
 */
#include "runtime/machine/x86_64.h"

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
    .section .note.GNU-stack, "", %progbits
