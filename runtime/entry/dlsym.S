/* SPDX-License-Identifier: MIT */
/*
 * dlsym.S: dlsym, which finds out who called it by its return address. Called by a jump, it has its
 * caller's return slot, where a guard may stand (stack/guard.h): the address itself is put back,
 * before the real function is entered by a jump.
 */
#include "runtime/stack/guard_cells.h"

#if defined(__x86_64__)
    .text
    .globl  dlsym
    .type   dlsym, @function
    .hidden real_dlsym
    .hidden real_find_dlsym
dlsym:
    .cfi_startproc
    mov     (%rsp), %rax
    lea     memtrace_guard(%rip), %r11
    sub     %r11, %rax
    cmp     $GUARD_COUNT * GUARD_CELL, %rax
    jae     .Lenter
    shr     $4, %rax
    lea     guard_table(%rip), %r11
    mov     (%r11, %rax, 8), %rax
    mov     %rax, (%rsp)
.Lenter:
    mov     real_dlsym(%rip), %rax
    test    %rax, %rax
    jz      .Lfind
    jmp     *%rax
.Lfind:
    push    %rdi
    .cfi_adjust_cfa_offset 8
    push    %rsi
    .cfi_adjust_cfa_offset 8
    sub     $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    real_find_dlsym
    add     $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop     %rsi
    .cfi_adjust_cfa_offset -8
    pop     %rdi
    .cfi_adjust_cfa_offset -8
    test    %rax, %rax
    jz      .Lnone
    jmp     *%rax
.Lnone:
    ret
    .cfi_endproc
    .size   dlsym, . - dlsym
#endif
    .section .note.GNU-stack, "", %progbits
