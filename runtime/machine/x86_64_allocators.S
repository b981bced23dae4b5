/* SPDX-License-Identifier: MIT */
/*
 * x86_64_allocators.S: what functions of the program that allocate are led to. See
 * memtrace/allocators.h, which tells how a stub comes here: with a frame of rbp, the caller's r11
 * pushed, and the site in r11.
 *
 * The function's own code has all registers as its caller left them, and its caller all as the
 * function left them, those included that a call may change: a compiler that has seen a function
 * knows which ones it leaves alone (gcc: -fipa-ra). Code in C that runs at each call (*_fast)
 * changes general registers alone, which are saved; and needs no alignment of the stack, for the
 * same compiler may call a function without which needs none. What is called seldom may call the C
 * library, which uses whatever vector registers there are: before it they are saved whole. (By plain
 * moves: XSAVE and XRSTOR take ten times as long.)
 *
 * It is a frame like any other, so debuggers and exceptions find their way through it.
 */
    /* On the stack, from rbp downwards: struct allocator_call (machine.h), which ends with the
     * return address. */
    .set    CALL_BYTES, 8 * 18
    .set    CALL, -(CALL_BYTES - 16)       /* of rbp */
    .set    NUMBER, CALL + 8 * 8
    .set    SCRATCH, -8
    .set    SITE, -16
    .macro  begin
    .cfi_startproc
    .cfi_def_cfa rbp, 16
    .cfi_offset rbp, -16
    .endm

    /* All of it below `site`. */
    .macro  keep_call
    push    %r9
    push    %r8
    push    %rcx
    push    %rdx
    push    %rsi
    push    %rdi
    sub     $64, %rsp
    .endm

    /* Before the function: its arguments are kept already. */
    .macro  ask_before function
    push    %rax
    push    %r10
    cld
    lea     CALL(%rbp), %rdi
    call    \function\()_fast
    test    %eax, %eax
    jnz     1f
    lea     CALL(%rbp), %rdi
    lea     \function(%rip), %rcx
    call    *machine_call_apart(%rip)
1:
    pop     %r10
    pop     %rax
    mov     NUMBER(%rbp), %rdi
    mov     NUMBER + 8(%rbp), %rsi
    mov     NUMBER + 16(%rbp), %rdx
    mov     NUMBER + 24(%rbp), %rcx
    mov     NUMBER + 32(%rbp), %r8
    mov     NUMBER + 40(%rbp), %r9
    .endm

    .text
    .hidden allocator_returned
    .hidden allocator_resizes
    .hidden allocator_leaves
    .hidden allocator_returned_fast
    .hidden allocator_resizes_fast
    .hidden allocator_leaves_fast
    .hidden machine_call_apart

    /* machine_call_apart is one of these (x86_64_vectors.c). Each calls the function in rcx, with what
     * is in rdi and rsi. All registers but the general ones are what they were after it; those of
     * the x87, which nobody uses there, are not looked at.
     *
     * A processor is slower where it does not know that the high parts of vector registers are zero,
     * and it knows that of none that was loaded whole. So where all are zero that is told to it.
     *
     * register, width: of one vector register; move: what moves it; either: the logical or of two;
     * mask: what moves a mask register, where there are any, and then there are 16 more vector
     * registers, too. */
    .set    MXCSR, 0
    .set    HIGH, 8                        /* 0: the high parts of all are zero */
    .set    MASKS, 64
    .set    EITHER, 128                    /* the first 16, one or the other */
    .set    FIRST, 192

    .macro  apart name, register, width, move, either, mask
    .globl  \name
    .hidden \name
    .type   \name, @function
\name:
    .cfi_startproc
    push    %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     %rsp, %rbp
    .cfi_def_cfa_register rbp
    .ifb \mask
    sub     $(FIRST + 16 * \width), %rsp
    .else
    sub     $(FIRST + 32 * \width), %rsp
    .endif
    and     $-64, %rsp
    stmxcsr MXCSR(%rsp)
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    \move   %\register\n, FIRST + \width * \n(%rsp)
    .endr
    .ifnb \mask
    .irp    n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \move   %\register\n, FIRST + \width * \n(%rsp)
    .endr
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    \mask   %k\n, MASKS + 8 * \n(%rsp)
    .endr
    .endif
    .if \width > 16
    .irp    n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    \either %\register\n, %\register\()0, %\register\()0
    .endr
    \move   %\register\()0, EITHER(%rsp)
    mov     EITHER + 16(%rsp), %rax
    .irp    at, 24, 32, 40, 48, 56
    .if \at < \width
    or      EITHER + \at(%rsp), %rax
    .endif
    .endr
    mov     %rax, HIGH(%rsp)
    vzeroupper
    .endif
    call    *%rcx
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    \move   FIRST + \width * \n(%rsp), %\register\n
    .endr
    .ifnb \mask
    .irp    n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \move   FIRST + \width * \n(%rsp), %\register\n
    .endr
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    \mask   MASKS + 8 * \n(%rsp), %k\n
    .endr
    .endif
    .if \width > 16
    cmpq    $0, HIGH(%rsp)
    jne     1f
    vzeroupper
1:
    .endif
    stmxcsr MXCSR + 4(%rsp)
    mov     MXCSR(%rsp), %eax
    cmp     MXCSR + 4(%rsp), %eax
    je      2f
    ldmxcsr MXCSR(%rsp)
2:
    leave
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size   \name, . - \name
    .endm

    apart   machine_call_apart_xmm, xmm, 16, movaps
    apart   machine_call_apart_ymm, ymm, 32, vmovaps, vorps
    apart   machine_call_apart_zmm, zmm, 64, vmovaps, vporq, kmovq
    /* Of processors whose masks have 16 bits. */
    apart   machine_call_apart_knl, zmm, 64, vmovaps, vporq, kmovw

    .type   allocator_resize, @function
allocator_resize:
    begin
    push    %r11
    keep_call
    ask_before allocator_resizes
    mov     SITE(%rbp), %r11
    jmp     2f
    .cfi_endproc
    .size   allocator_resize, . - allocator_resize

    .type   allocator_enter, @function
allocator_enter:
    begin
    push    %r11
    keep_call
2:
    call    *(%r11)                        /* the site's first word */
    push    %rax
    push    %rdx
    push    %rcx
    push    %rsi
    push    %rdi
    push    %r8
    push    %r9
    push    %r10
    lea     CALL(%rbp), %rdi
    mov     %rax, %rsi
    call    allocator_returned_fast
    test    %eax, %eax
    jz      4f
3:
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rdi
    pop     %rsi
    pop     %rcx
    pop     %rdx
    pop     %rax
    mov     SCRATCH(%rbp), %r11
    leave
    .cfi_remember_state
    .cfi_def_cfa rsp, 8
    ret
    .cfi_restore_state
4:
    lea     CALL(%rbp), %rdi
    mov     8 * 7(%rsp), %rsi              /* what rax was */
    lea     allocator_returned(%rip), %rcx
    call    *machine_call_apart(%rip)
    jmp     3b
    .cfi_endproc
    .size   allocator_enter, . - allocator_enter

    /* Called by the stub, whose frame it is: between that and struct allocator_call is our own
     * return address, at the place of `site`. */
    .type   allocator_leave, @function
allocator_leave:
    begin
    keep_call
    push    SITE(%rbp)                     /* the way back */
    push    %rax
    mov     %r11, SITE(%rbp)
    ask_before allocator_leaves
    pop     %rax
    pop     SITE(%rbp)
    add     $64 + 8 * 6, %rsp
    ret
    .cfi_endproc
    .size   allocator_leave, . - allocator_leave

    .section .data.rel.ro, "aw", %progbits
    .balign 8
    .globl  machine_allocator_entries
    .hidden machine_allocator_entries
    .type   machine_allocator_entries, @object
machine_allocator_entries:
    .quad   allocator_enter, allocator_resize, allocator_leave
    .size   machine_allocator_entries, . - machine_allocator_entries
    .section .note.GNU-stack, "", %progbits
