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
 * same compiler may call a function without which needs none. What is seldom called may use all, so
 * before it all are saved, by the processor's instruction for that.
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
    /* struct machine_vectors (x86_64_vectors.c) */
    .set    BY_XSAVE, 1
    .set    BY_XSAVEC, 2
    /* Intel SDM volume 1, 13.4.2: the header of an XSAVE area. */
    .set    HEADER, 512

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
    call    call_apart
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
    .hidden machine_vectors

    /* Calls the function in rcx, with what is in rdi and rsi. All registers but the general ones are
     * what they were after it. */
    .type   call_apart, @function
call_apart:
    .cfi_startproc
    push    %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset rbp, -16
    mov     %rsp, %rbp
    .cfi_def_cfa_register rbp
    mov     machine_vectors(%rip), %rax    /* which */
    mov     %rax, %rdx
    shr     $32, %rdx
    sub     machine_vectors + 8(%rip), %rsp
    and     $-64, %rsp
    mov     machine_vectors + 16(%rip), %r8d
    cmp     $BY_XSAVE, %r8d
    jb      5f
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    movq    $0, HEADER + 8 * \n(%rsp)
    .endr
    ja      3f
    xsave64 (%rsp)
    jmp     4f
3:
    xsavec64 (%rsp)
4:
    call    *%rcx
    mov     machine_vectors(%rip), %rax
    mov     %rax, %rdx
    shr     $32, %rdx
    xrstor64 (%rsp)
    leave
    .cfi_remember_state
    .cfi_def_cfa rsp, 8
    ret
    .cfi_restore_state
5:
    fxsave64 (%rsp)
    call    *%rcx
    fxrstor64 (%rsp)
    leave
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size   call_apart, . - call_apart

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
    call    call_apart
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
