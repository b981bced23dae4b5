/* SPDX-License-Identifier: MIT */
/*
 * x86_64_allocators.S: what functions of the program that allocate are led to. See
 * memtrace/allocators.h, which tells how a stub comes here: with a frame of rbp, the caller's r11
 * pushed, and the site in r11.
 *
 * The function's own code has all registers as its caller left them, and its caller all as the
 * function left them, those included that a call may change: a compiler that has seen a function
 * knows which ones it leaves alone (gcc: -fipa-ra). Code in C here changes no more of vector
 * registers than their low halves, which are saved.
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
    .set    VECTORS, 16 * 16

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

    /* And so that C code may follow: a compiler that has seen a function which needs no alignment of
     * the stack may call it without. */
    .macro  save_vectors
    sub     $VECTORS, %rsp
    and     $-16, %rsp
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  %xmm\n, 16 * \n(%rsp)
    .endr
    .endm

    /* from: where rsp was before they were saved, from rbp. */
    .macro  load_vectors from
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps  16 * \n(%rsp), %xmm\n
    .endr
    lea     \from(%rbp), %rsp
    .endm

    /* Before the function: its arguments are kept already. from: rsp, from rbp. */
    .macro  ask_before function, from
    push    %rax
    push    %r10
    save_vectors
    lea     CALL(%rbp), %rdi
    cld
    call    \function
    load_vectors (\from - 16)
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

    .type   allocator_resize, @function
allocator_resize:
    begin
    push    %r11
    keep_call
    ask_before allocator_resizes, (CALL)
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
    save_vectors
    lea     CALL(%rbp), %rdi
    mov     %rax, %rsi
    call    allocator_returned
    load_vectors (CALL - 8 * 8)
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
    .cfi_def_cfa rsp, 8
    ret
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
    ask_before allocator_leaves, (CALL - 16)
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
