/* SPDX-License-Identifier: MIT */
/* stub_aarch64.S: what runs in a program that is attached to. See stub.h. */
#include "collect/attach/stub.h"
#include "collect/attach/stub_aarch64.h"

#include <asm/unistd.h>

    .macro  system_call number
    mov     x8, #\number
    svc     #0
    .endm

    .section .rodata
    .globl  stub_begin, stub_lead, stub_thread, stub_end
    .hidden stub_begin, stub_lead, stub_thread, stub_end

    .balign 16
stub_begin:

/* x19: struct stub_frame, on a boundary of 16 bytes; sp: the same. Signals wait meanwhile: a handler
 * that leaves by a jump would leave a lock of malloc's behind. The mask that was there, and the
 * stack for handlers, go to where rt_sigreturn finds them. */
stub_lead:
    ldr     x20, [x19, #STUB_REGISTERS]
    mov     x0, #0                      /* SIG_BLOCK */
    add     x1, x19, #STUB_MASK
    add     x2, x20, #STUB_SIGNAL_MASK
    mov     x3, #8
    system_call __NR_rt_sigprocmask
    mov     x0, #0
    add     x1, x20, #STUB_SIGNAL_STACK
    system_call __NR_sigaltstack
    ldr     x21, [x19, #STUB_PLACE]
    mov     x0, x21
    ldr     x1, [x19, #STUB_PLACE_SIZE]
    mov     x2, #3
    mov     x3, #0x22                   /* private, anonymous, nothing is replaced */
    movk    x3, #0x10, lsl #16
    mov     x4, #-1
    mov     x5, #0
    system_call __NR_mmap
    cmp     x0, x21
    b.ne    2f
    add     x1, x19, #STUB_DATA
    mov     x2, #STUB_THREAD_SIZE
1:  ldr     x3, [x1], #8
    str     x3, [x0], #8
    subs    x2, x2, #8
    b.ne    1b
    add     x0, x19, #STUB_ID
    mov     x1, #0
    ldr     x2, [x19, #STUB_START]
    mov     x3, x21
    ldr     x4, [x19, #STUB_PTHREAD_CREATE]
    blr     x4
    cbz     w0, 2f
    str     w0, [x21, #STUB_RESULT]
    mov     w0, #STUB_NOT_STARTED
    stlr    w0, [x21]                   /* STUB_STATE */
2:  ldr     w0, [x19, #STUB_IS_SETTLED]
    cbnz    w0, 3f
    mov     sp, x20
    system_call __NR_rt_sigreturn

/* rt_sigreturn would have a call that the kernel goes on with end early. restart_syscall has no
 * argument, so x0 is free to lead there; and no call keeps more of the vectors than 128 bits. Up to
 * the last but one instruction all that is read lies above sp. */
3:  mov     x0, #2                      /* SIG_SETMASK */
    add     x1, x20, #STUB_SIGNAL_MASK
    mov     x2, #0
    mov     x3, #8
    mov     sp, x20
    system_call __NR_rt_sigprocmask
    ldr     w1, [sp, #STUB_SIGNAL_FPSR]
    ldr     w2, [sp, #(STUB_SIGNAL_FPSR + 4)]
    msr     fpsr, x1
    msr     fpcr, x2
    add     x0, sp, #STUB_SIGNAL_VECTORS
    ldp     q0, q1, [x0, #0]
    ldp     q2, q3, [x0, #32]
    ldp     q4, q5, [x0, #64]
    ldp     q6, q7, [x0, #96]
    ldp     q8, q9, [x0, #128]
    ldp     q10, q11, [x0, #160]
    ldp     q12, q13, [x0, #192]
    ldp     q14, q15, [x0, #224]
    ldp     q16, q17, [x0, #256]
    ldp     q18, q19, [x0, #288]
    ldp     q20, q21, [x0, #320]
    ldp     q22, q23, [x0, #352]
    ldp     q24, q25, [x0, #384]
    ldp     q26, q27, [x0, #416]
    ldp     q28, q29, [x0, #448]
    ldp     q30, q31, [x0, #480]
    add     x0, sp, #STUB_SIGNAL_REGISTERS
    ldp     x1, x2, [x0, #8]
    ldp     x3, x4, [x0, #24]
    ldp     x5, x6, [x0, #40]
    ldp     x7, x8, [x0, #56]
    ldp     x9, x10, [x0, #72]
    ldp     x11, x12, [x0, #88]
    ldp     x13, x14, [x0, #104]
    ldp     x15, x16, [x0, #120]
    ldp     x17, x18, [x0, #136]
    ldp     x19, x20, [x0, #152]
    ldp     x21, x22, [x0, #168]
    ldp     x23, x24, [x0, #184]
    ldp     x25, x26, [x0, #200]
    ldp     x27, x28, [x0, #216]
    ldp     x29, x30, [x0, #232]
    ldr     x0, [sp, #STUB_SIGNAL_PC]
    add     sp, sp, #((STUB_SIGNAL_SIZE + STUB_GAP) & 0xfff)
    add     sp, sp, #((STUB_SIGNAL_SIZE + STUB_GAP) & ~0xfff)
    ret     x0

/* x0: struct stub_thread. The thread has a clean stack and may call anything. It unmaps what it
 * read by a jump, so that it is back in the C library when that is gone. What others wait for is
 * stored last. */
stub_thread:
    hint    #34                         /* bti c */
    stp     x29, x30, [sp, #-32]!
    mov     x29, sp
    stp     x19, x20, [sp, #16]
    mov     x19, x0
    ldr     x1, [x19, #STUB_PTHREAD_SELF]
    blr     x1
    ldr     x1, [x19, #STUB_PTHREAD_DETACH]
    blr     x1
    mov     x0, #15                     /* PR_SET_NAME */
    add     x1, x19, #STUB_NAME
    system_call __NR_prctl
    ldr     w1, [x19, #STUB_WANTS]
    tst     w1, #STUB_WANTS_DESCRIPTORS
    b.eq    1f
    mov     x0, #STUB_FIRST_OTHER
    mov     w1, #-1
    mov     x2, #STUB_UNSHARE
    system_call STUB_CLOSE_RANGE
    cbnz    w0, 1f                      /* an older kernel has no such call: as if not wanted */
    system_call __NR_gettid
    str     w0, [x19, #STUB_OWN_TID]
1:  ldr     w1, [x19, #STUB_WANTS]
    tst     w1, #STUB_WANTS_FILE
    b.eq    2f
    mov     x20, #0x13                  /* closed at exec, to be sealed, to be executed */
1:  add     x0, x19, #(STUB_FILE_NAME & ~0xfff)
    add     x0, x0, #(STUB_FILE_NAME & 0xfff)
    mov     x1, x20
    system_call __NR_memfd_create
    str     w0, [x19, #STUB_FILE]
    cmn     w0, #22                     /* an older kernel knows no such thing as "to be executed" */
    b.ne    2f
    cmp     x20, #3
    mov     x20, #3
    b.ne    1b
2:  ldr     w1, [x19, #STUB_WANTS]
    tst     w1, #STUB_WAITS_FOR
    b.eq    5f
    mov     w1, #STUB_FILLING
    stlr    w1, [x19]                   /* STUB_STATE */
    mov     w20, #2500
3:  ldr     w1, [x19, #STUB_GO]
    cbnz    w1, 4f
    add     x0, x19, #STUB_PAUSE
    mov     x1, #0
    system_call __NR_nanosleep
    subs    w20, w20, #1
    b.ne    3b
    b       12f                         /* who started us was killed */
4:  dmb     ish                         /* what it was given is there with the word */
    cmp     w1, #STUB_GO_ON
    b.ne    12f
5:  ldr     x2, [x19, #STUB_FUNCTION]
    cbnz    x2, 6f
    add     x0, x19, #STUB_PATH
    mov     w1, #2                      /* RTLD_NOW, RTLD_LOCAL */
    ldr     x2, [x19, #STUB_DLOPEN]
    blr     x2
    cbz     x0, 7f
    add     x1, x19, #STUB_ENTRY
    ldr     x2, [x19, #STUB_DLSYM]
    blr     x2
    mov     x2, x0
    cbz     x2, 7f
6:  add     x0, x19, #STUB_SETTINGS
    blr     x2
    str     w0, [x19, #STUB_RESULT]
    mov     w1, #STUB_CALLED
    b       10f
7:  ldr     x2, [x19, #STUB_DLERROR]
    blr     x2
    cbz     x0, 9f
    add     x1, x19, #STUB_MESSAGE
    mov     w2, #(STUB_MESSAGE_SIZE - 1)
8:  ldrb    w3, [x0], #1
    strb    w3, [x1], #1
    cbz     w3, 9f
    subs    w2, w2, #1
    b.ne    8b
9:  mov     w1, #STUB_NOT_LOADED
10: stlr    w1, [x19]                   /* STUB_STATE */
    mov     w20, #1000
11: ldr     w1, [x19, #STUB_ACK]
    cbnz    w1, 12f
    add     x0, x19, #STUB_PAUSE
    mov     x1, #0
    system_call __NR_nanosleep
    subs    w20, w20, #1
    b.ne    11b
12: ldr     w1, [x19, #STUB_WANTS]
    tst     w1, #STUB_WANTS_FILE
    b.eq    13f
    ldr     w0, [x19, #STUB_FILE]
    tbnz    w0, #31, 13f
    system_call __NR_close              /* the library stays mapped */
13: mov     x0, x19
    ldr     x1, [x19, #STUB_MAPPED]
    ldr     x16, [x19, #STUB_MUNMAP]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #32
    br      x16
stub_end:
    .section .note.GNU-stack, "", %progbits
