/* SPDX-License-Identifier: MIT */
/*
 * dlsym.S: dlsym and dlvsym, which find out who called them by their return address. Called by a
 * jump, they have their caller's return slot, where a guard may stand (stack/guard.h): the address
 * itself is put back, before the real function is entered by a jump.
 */
#include "runtime/stack/guard_cells.h"

#if defined(__x86_64__)
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
    cmp     $GUARD_COUNT * GUARD_CELL, %rax
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
#endif
    .section .note.GNU-stack, "", %progbits
