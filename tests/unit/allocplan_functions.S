/* SPDX-License-Identifier: MIT */
/*
 * allocplan_functions.S: functions for allocplan_test.c whose first bytes are awkward, each of which
 * computes something of its arguments; and entries that count, as memtrace/allocators.h describes
 * them.
 */
.macro FUNCTION name
    .globl  \name
    .type   \name, @function
\name:
    .cfi_startproc
.endm
.macro END name
    .cfi_endproc
    .size   \name, . - \name
    .p2align 4
.endm

    .data
    .globl  helper_saw
value:
    .quad   1000
byte:
    .byte   7
    .p2align 4
wide:
    .quad   0x1122334455667788, 0x99aabbccddeeff00
helper_saw:
    .quad   0
pointer:
    .quad   helper

    .section .rodata
    .p2align 2
table_to_start:
    .long   .Lother - table_to_start, table_start - table_to_start
table_inside:
    .long   .Lone - table_inside, .Ltwo - table_inside

    .text
    .p2align 4
/* Notes where it was called from, and adds. */
FUNCTION helper
    mov     (%rsp), %rax
    mov     %rax, helper_saw(%rip)
    lea     3(%rdi,%rsi), %rax
    ret
END helper

FUNCTION rip_load
    mov     value(%rip), %rax
    add     %rdi, %rax
    ret
END rip_load

/* The displacement is not at the instruction's end. */
FUNCTION rip_immediate
    cmpb    $7, byte(%rip)
    sete    %al
    movzbl  %al, %eax
    add     %rdi, %rax
    ret
END rip_immediate

FUNCTION rip_vector
    movdqu  wide(%rip), %xmm0
    movq    %xmm0, %rax
    xor     %rdi, %rax
    ret
END rip_vector

FUNCTION short_branch
    test    %rdi, %rdi
    je      1f
    lea     1(%rdi), %rax
    ret
1:  mov     $-1, %rax
    ret
END short_branch

FUNCTION two_branches
    cmp     $5, %dil
    ja      1f
    jb      2f
    mov     $50, %eax
    ret
1:  mov     $60, %eax
    ret
2:  mov     $40, %eax
    ret
END two_branches

FUNCTION far_branch
    cmp     %rdi, %rsi
    jg      far_target
    mov     %rdi, %rax
    ret
END far_branch

    .skip   300, 0xcc
FUNCTION far_target
    lea     (%rsi,%rsi), %rax
    ret
END far_target

FUNCTION call_second
    sub     $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    helper
    .globl  call_second_returns
call_second_returns:
    add     $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
END call_second

FUNCTION call_register
    mov     pointer(%rip), %rdx
    push    %rbx
    .cfi_adjust_cfa_offset 8
    call    *%rdx
    pop     %rbx
    .cfi_adjust_cfa_offset -8
    ret
END call_register

/* A call within the first bytes, as the last of them. */
FUNCTION call_register_second
    push    %r9
    .cfi_adjust_cfa_offset 8
    nop
    call    *%rdx
    .globl  call_register_second_returns
call_register_second_returns:
    add     $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
END call_register_second

FUNCTION call_memory
    sub     $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    *pointer(%rip)
    .globl  call_memory_returns
call_memory_returns:
    add     $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
END call_memory

FUNCTION call_early
    push    %rbx
    .cfi_adjust_cfa_offset 8
    call    *%rdx
    add     $1, %rax
    pop     %rbx
    .cfi_adjust_cfa_offset -8
    ret
END call_early

FUNCTION call_stack
    push    %rdx
    .cfi_adjust_cfa_offset 8
    nop
    call    *(%rsp)
    add     $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
END call_stack

FUNCTION pushes
    push    %rbp
    .cfi_adjust_cfa_offset 8
    push    %rbx
    .cfi_adjust_cfa_offset 8
    push    %r12
    .cfi_adjust_cfa_offset 8
    push    %r13
    .cfi_adjust_cfa_offset 8
    lea     (%rdi,%rsi,2), %rax
    pop     %r13
    .cfi_adjust_cfa_offset -8
    pop     %r12
    .cfi_adjust_cfa_offset -8
    pop     %rbx
    .cfi_adjust_cfa_offset -8
    pop     %rbp
    .cfi_adjust_cfa_offset -8
    ret
END pushes

FUNCTION begins_with_endbr64
    endbr64
    lea     9(%rdi), %rax
    lea     (%rax,%rax), %rax
    ret
END begins_with_endbr64

/* All of it is replaced, its return as well. */
FUNCTION five_bytes
    lea     (%rdi,%rsi), %rax
    ret
END five_bytes

FUNCTION tail_jump
    jmp     far_target
END tail_jump

FUNCTION all_registers
    lea     (%rdi,%rsi), %rax
    add     %rdx, %rax
    add     %rcx, %rax
    add     %r8, %rax
    add     %r9, %rax
    ret
END all_registers

FUNCTION reads_r11
    mov     %r11, %rax
    xor     %r11, %rax
    add     %rdi, %rax
    ret
END reads_r11

FUNCTION recursive
    test    %rdi, %rdi
    jz      1f
    push    %rdi
    .cfi_adjust_cfa_offset 8
    dec     %rdi
    call    recursive
    pop     %rdi
    .cfi_adjust_cfa_offset -8
    add     %rdi, %rax
    ret
1:  xor     %eax, %eax
    ret
END recursive

FUNCTION switches
    and     $1, %edi
    lea     table_inside(%rip), %rdx
    movslq  (%rdx,%rdi,4), %rax
    add     %rdx, %rax
    jmp     *%rax
.Lone:
    mov     $11, %eax
    ret
.Ltwo:
    mov     $22, %eax
    ret
END switches

/* ---- What cannot be followed ---- */

FUNCTION too_short
    mov     %edi, %eax
    ret
END too_short

FUNCTION short_jump_first
    jmp     1f
    nop
    nop
    nop
1:  lea     2(%rdi), %rax
    ret
END short_jump_first

FUNCTION loops_to_start
    dec     %rdi
    jnz     loops_to_start
    lea     4(%rsi), %rax
    ret
END loops_to_start

FUNCTION loops_behind_endbr64
    endbr64
1:  dec     %rdi
    add     $1, %rsi
    test    %rdi, %rdi
    jg      1b
    mov     %rsi, %rax
    ret
END loops_behind_endbr64

FUNCTION jumps_into
    inc     %rsi
1:  dec     %rdi
    jg      1b
    mov     %rsi, %rax
    ret
END jumps_into

FUNCTION far_jumps_into
    inc     %rsi
.Linside:
    dec     %rdi
    lea     (%rsi,%rdi), %rax
    jg      somewhere_else
    ret
END far_jumps_into
    .skip   300, 0xcc
FUNCTION somewhere_else
    cmp     $100, %rax
    jl      .Linside
    ret
END somewhere_else

FUNCTION neighbour_enters
    inc     %rsi
.Lneighbour:
    inc     %rdi
    lea     (%rsi,%rdi), %rax
    ret
END neighbour_enters
FUNCTION neighbour
    mov     $70, %esi
    jmp     .Lneighbour
END neighbour

FUNCTION table_start
    and     $1, %edi
    lea     table_to_start(%rip), %rdx
    movslq  (%rdx,%rdi,4), %rax
    dec     %edi
    add     %rdx, %rax
    jmp     *%rax
.Lother:
    mov     $33, %eax
    ret
END table_start

FUNCTION stack_argument
    lea     (%rdi,%rsi), %rax
    add     8(%rsp), %rax
    ret
END stack_argument

FUNCTION stack_argument_deep
    push    %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov     %rsp, %rbp
    .cfi_def_cfa_register %rbp
    lea     (%rdi,%rsi), %rax
    add     16(%rbp), %rax
    pop     %rbp
    .cfi_def_cfa %rsp, 8
    ret
END stack_argument_deep

FUNCTION stack_argument_address
    sub     $24, %rsp
    .cfi_adjust_cfa_offset 24
    lea     32(%rsp), %rax
    mov     (%rax), %rax
    add     $24, %rsp
    .cfi_adjust_cfa_offset -24
    ret
END stack_argument_address

/* Of whom it jumps to. */
FUNCTION stack_argument_behind
    add     $1, %rdi
    lea     1(%rsi), %rsi
    jmp     stack_argument
END stack_argument_behind

FUNCTION returns_far
    lea     (%rdi,%rsi), %rax
    lea     (%rax,%rax), %rax
    ret     $8
END returns_far

FUNCTION own_return_address
    mov     %rdi, %rax
    add     (%rsp), %rax
    sub     (%rsp), %rax
    ret
END own_return_address

FUNCTION pops_return_address
    mov     %rdi, %rax
    pop     %rdx
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdx
    nop
    jmp     *%rdx
END pops_return_address

FUNCTION counts_down
    mov     %edi, %ecx
    jrcxz   1f
    nop
1:  mov     %rdi, %rax
    ret
END counts_down

FUNCTION unknown_instruction
    .byte   0x06, 0x06, 0x06, 0x06, 0x06, 0x06
    ret
END unknown_instruction

FUNCTION another_begins
    inc     %rdi
    .globl  begins_there
    .type   begins_there, @function
begins_there:
    lea     1(%rdi), %rax
    ret
END another_begins

    .globl  no_table
    .type   no_table, @function
no_table:
    lea     5(%rdi), %rax
    lea     5(%rax), %rax
    ret
    .size   no_table, . - no_table
    .p2align 4

FUNCTION there_twice_1
    lea     1(%rdi), %rax
    lea     1(%rax), %rax
    ret
END there_twice_1

    .globl  chosen
    .type   chosen, @gnu_indirect_function
chosen:
    lea     rip_load(%rip), %rax
    ret
    .size   chosen, . - chosen
    .p2align 4

    .globl  another_name
    .set    another_name, pushes

/* ---- Entries ---- */

/* A site of the test: how often it was met, and where the function's moved instructions are. */
.macro ENTER name
    .globl  \name
    .type   \name, @function
\name:
    incq    (%r11)
    pushq   8(%r11)
    mov     -8(%rbp), %r11
    mov     (%rbp), %rbp
    call    *(%rsp)
    add     $16, %rsp
    pop     %rbp
    ret
    .size   \name, . - \name
.endm
ENTER test_enter
ENTER test_resize

    .globl  test_leave
    .type   test_leave, @function
test_leave:
    incq    (%r11)
    mov     $-1, %r11
    ret
    .size   test_leave, . - test_leave

    .section .note.GNU-stack, "", @progbits
