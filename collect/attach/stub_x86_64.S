/* SPDX-License-Identifier: MIT */
/* stub_x86_64.S: what runs in a program that is attached to. See stub.h. */
#include "collect/attach/stub.h"

#define STUB_XSAVE_SIZE 16384

    .section .rodata
    .globl stub_begin, stub_lead, stub_thread, stub_end
    .hidden stub_begin, stub_lead, stub_thread, stub_end

    .balign 16
stub_begin:

/* rbx: struct stub_frame, on a boundary of 64 bytes; rsp: the same. Signals wait meanwhile: a
 * handler that leaves by a jump would leave a lock of malloc's behind. */
stub_lead:
    cld
    mov     $14, %eax                   /* rt_sigprocmask(SIG_BLOCK, ...) */
    xor     %edi, %edi
    lea     STUB_MASK(%rbx), %rsi
    lea     STUB_OLD_MASK(%rbx), %rdx
    mov     $8, %r10d
    syscall
    sub     $STUB_XSAVE_SIZE, %rsp
    mov     %rsp, %r12
    lea     512(%rsp), %rdi             /* the header of the saved state, which must be zero */
    xor     %eax, %eax
    mov     $8, %ecx
    rep stosq
    mov     $-1, %eax
    mov     $-1, %edx
    xsave64 (%r12)
    mov     $9, %eax                    /* mmap */
    mov     STUB_PLACE(%rbx), %rdi
    mov     STUB_PLACE_SIZE(%rbx), %rsi
    mov     $3, %edx
    mov     $0x100022, %r10d            /* private, anonymous, nothing is replaced */
    mov     $-1, %r8
    xor     %r9d, %r9d
    syscall
    cmp     STUB_PLACE(%rbx), %rax
    jne     1f
    mov     %rax, %rdi
    lea     STUB_DATA(%rbx), %rsi
    mov     $STUB_THREAD_SIZE, %ecx
    rep movsb
    lea     STUB_ID(%rbx), %rdi
    xor     %esi, %esi
    mov     STUB_START(%rbx), %rdx
    mov     STUB_PLACE(%rbx), %rcx
    call    *STUB_PTHREAD_CREATE(%rbx)
    test    %eax, %eax
    jz      1f
    mov     STUB_PLACE(%rbx), %rdx
    mov     %eax, STUB_RESULT(%rdx)
    movl    $STUB_NOT_STARTED, STUB_STATE(%rdx)
1:  mov     $-1, %eax
    mov     $-1, %edx
    xrstor64 (%r12)
    mov     $14, %eax                   /* rt_sigprocmask(SIG_SETMASK, ...) */
    mov     $2, %edi
    lea     STUB_OLD_MASK(%rbx), %rsi
    xor     %edx, %edx
    mov     $8, %r10d
    syscall
    mov     STUB_REGISTERS(%rbx), %rsp
    pop     %r15
    pop     %r14
    pop     %r13
    pop     %r12
    pop     %r11
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rbp
    pop     %rdi
    pop     %rsi
    pop     %rdx
    pop     %rcx
    pop     %rax
    pop     %rbx
    popfq
    ret     $STUB_GAP

/* rdi: struct stub_thread. The thread has a clean stack and may call anything. It unmaps what it
 * read by a jump, so that it is back in the C library when that is gone. */
stub_thread:
    push    %rbx
    push    %rbp
    sub     $8, %rsp
    mov     %rdi, %rbx
    call    *STUB_PTHREAD_SELF(%rbx)
    mov     %rax, %rdi
    call    *STUB_PTHREAD_DETACH(%rbx)
    mov     $157, %eax                  /* prctl(PR_SET_NAME, ...) */
    mov     $15, %edi
    lea     STUB_NAME(%rbx), %rsi
    syscall
    testl   $STUB_WANTS_DESCRIPTORS, STUB_WANTS(%rbx)
    jz      9f
    mov     $STUB_CLOSE_RANGE, %eax
    mov     $STUB_FIRST_OTHER, %edi
    mov     $-1, %esi
    mov     $STUB_UNSHARE, %edx
    syscall
    test    %eax, %eax                  /* an older kernel has no such call: as if not wanted */
    jnz     9f
    mov     $186, %eax                  /* gettid */
    syscall
    mov     %eax, STUB_OWN_TID(%rbx)
9:  testl   $STUB_WANTS_FILE, STUB_WANTS(%rbx)
    jz      9f
    mov     $0x13, %esi                 /* closed at exec, to be sealed, to be executed */
8:  mov     $319, %eax                  /* memfd_create */
    lea     STUB_FILE_NAME(%rbx), %rdi
    syscall
    mov     %eax, STUB_FILE(%rbx)
    cmp     $-22, %eax                  /* an older kernel knows no such thing as "to be executed" */
    jne     9f
    cmp     $3, %esi
    mov     $3, %esi
    jne     8b
9:  testl   $STUB_WAITS_FOR, STUB_WANTS(%rbx)
    jz      9f
    movl    $STUB_FILLING, STUB_STATE(%rbx)
    mov     $2500, %ebp
8:  cmpl    $0, STUB_GO(%rbx)
    jne     8f
    mov     $35, %eax                   /* nanosleep */
    lea     STUB_PAUSE(%rbx), %rdi
    xor     %esi, %esi
    syscall
    dec     %ebp
    jnz     8b
    jmp     7f                          /* who started us was killed */
8:  cmpl    $STUB_GO_ON, STUB_GO(%rbx)
    jne     7f
9:  mov     STUB_FUNCTION(%rbx), %rax
    test    %rax, %rax
    jnz     1f
    lea     STUB_PATH(%rbx), %rdi
    mov     $2, %esi                    /* RTLD_NOW, RTLD_LOCAL */
    call    *STUB_DLOPEN(%rbx)
    test    %rax, %rax
    jz      2f
    mov     %rax, %rdi
    lea     STUB_ENTRY(%rbx), %rsi
    call    *STUB_DLSYM(%rbx)
    test    %rax, %rax
    jz      2f
1:  lea     STUB_SETTINGS(%rbx), %rdi
    call    *%rax
    mov     %eax, STUB_RESULT(%rbx)
    movl    $STUB_CALLED, STUB_STATE(%rbx)
    jmp     5f
2:  call    *STUB_DLERROR(%rbx)
    test    %rax, %rax
    jz      4f
    mov     %rax, %rsi
    lea     STUB_MESSAGE(%rbx), %rdi
    mov     $(STUB_MESSAGE_SIZE - 1), %ecx
3:  lodsb
    stosb
    test    %al, %al
    loopnz  3b
4:  movl    $STUB_NOT_LOADED, STUB_STATE(%rbx)
5:  mov     $1000, %ebp
6:  cmpl    $0, STUB_ACK(%rbx)
    jne     7f
    mov     $35, %eax                   /* nanosleep */
    lea     STUB_PAUSE(%rbx), %rdi
    xor     %esi, %esi
    syscall
    dec     %ebp
    jnz     6b
7:  testl   $STUB_WANTS_FILE, STUB_WANTS(%rbx)
    jz      8f
    mov     STUB_FILE(%rbx), %edi
    test    %edi, %edi
    js      8f
    mov     $3, %eax                    /* close: the library stays mapped */
    syscall
8:  mov     %rbx, %rdi
    mov     STUB_MAPPED(%rbx), %rsi
    mov     STUB_MUNMAP(%rbx), %rax
    add     $8, %rsp
    pop     %rbp
    pop     %rbx
    jmp     *%rax
stub_end:
    .section .note.GNU-stack, "", @progbits
