/* SPDX-License-Identifier: MIT */
/* attachmachine_x86_64.c: attachmachine.h for x86-64. */
#define _GNU_SOURCE
#include "collect/attach/attachmachine.h"

#include "analyze/base/scope.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/filtercalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

enum {
    SYSCALL_BYTES = 2, /* of the instruction */
    /* What the kernel notes where a call is to be started again. */
    RESTART_SYSTEM = 512,
    RESTART_NO_INTERRUPT = 513,
    RESTART_NO_HANDLER = 514,
    RESTART_BLOCK = 516,
};

/* --- registers -------------------------------------------------------------------------------- */

bool attachmachine_needs_look(void) {
    return false;
}

/* Where it would go on if nothing had happened. */
static void find_restart(struct attachregisters *registers) {
    struct user_regs_struct *after = &registers->after;
    after->rip -= SYSCALL_BYTES;
    after->rax = after->orig_rax;
    switch (-(int64_t)registers->now.rax) {
    case RESTART_SYSTEM:
    case RESTART_NO_INTERRUPT:
    case RESTART_NO_HANDLER:
        break;
    case RESTART_BLOCK:
        after->rax = SYS_restart_syscall;
        break;
    case EINTR: /* by our stopping it: no signal is there */
        registers->is_cut_short = true;
        break;
    default:
        registers->is_over = true;
        *after = registers->now;
        break;
    }
    after->orig_rax = UINT64_MAX; /* nothing for the kernel to start again */
}

int attachmachine_read(pid_t pid, pid_t tid, const struct attachcallsite *before,
                       struct attachregisters *registers) {
    struct user_regs_struct now;
    (void)pid;
    (void)before;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &now) != 0) {
        return -1;
    }
    *registers = (struct attachregisters){
        .now = now,
        .after = now,
        .thread = now.fs_base,
        .call = {.number = (int64_t)now.orig_rax < 0 ? -1 : (int64_t)now.orig_rax,
                 .arguments = {now.rdi, now.rsi, now.rdx, now.r10, now.r8, now.r9},
                 .sp = now.rsp,
                 .pc = now.rip}};
    if (registers->call.number >= 0) {
        find_restart(registers);
    }
    return 0;
}

void attachmachine_restart(pid_t tid, const struct attachregisters *registers) {
    ptrace(PTRACE_SETREGS, tid, NULL, &registers->after);
}

void attachmachine_frame(const struct attachregisters *registers, struct attachframe *frame) {
    enum { RETURN_ADDRESS = 16, STACK_POINTER = 7 };
    const struct user_regs_struct *now = &registers->now;
    *frame = (struct attachframe){
        .pc = now->rip,
        .values = {now->rax, now->rdx, now->rcx, now->rbx, now->rsi, now->rdi, now->rbp, now->rsp,
                   now->r8, now->r9, now->r10, now->r11, now->r12, now->r13, now->r14, now->r15},
        .known = (UINT64_C(1) << RETURN_ADDRESS) - 1,
        .count = RETURN_ADDRESS,
        .sp = STACK_POINTER};
}

/* --- leading ---------------------------------------------------------------------------------- */

/* Popped from the stack, in this order. */
struct stub_registers {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rax, rbx, flags, pc;
};

/* The frame lies below the red zone. Up to the change of the registers nothing has happened. */
int attachmachine_lead(const struct attachimage *image, pid_t tid,
                       const struct attachregisters *registers, struct stub_frame *frame,
                       uint64_t to) {
    const struct user_regs_struct *after = &registers->after;
    struct user_regs_struct led = registers->now;
    uint64_t top = after->rsp - STUB_GAP;
    struct stub_registers saved = {
        .r15 = after->r15,
        .r14 = after->r14,
        .r13 = after->r13,
        .r12 = after->r12,
        .r11 = after->r11,
        .r10 = after->r10,
        .r9 = after->r9,
        .r8 = after->r8,
        .rbp = after->rbp,
        .rdi = after->rdi,
        .rsi = after->rsi,
        .rdx = after->rdx,
        .rcx = after->rcx,
        .rax = after->rax,
        .rbx = after->rbx,
        .flags = after->eflags,
        .pc = after->rip,
    };
    uint64_t base;
    frame->registers = top - sizeof saved;
    base = (frame->registers - sizeof *frame) & ~UINT64_C(63);
    if (attachimage_write(image, frame->registers, &saved, sizeof saved) != 0 ||
        attachimage_write(image, base, frame, sizeof *frame) != 0) {
        return -1;
    }
    attachfault_at("frame");
    led.rip = to;
    led.rsp = base;
    led.rbx = base;
    led.orig_rax = UINT64_MAX; /* nothing for the kernel to start again */
    if (ptrace(PTRACE_SETREGS, tid, NULL, &led) != 0) {
        return -1;
    }
    attachfault_at("registers");
    return 0;
}

/* --- system calls ----------------------------------------------------------------------------- */

int64_t attachmachine_newer_call(int64_t number) {
    switch (number) {
    case SYS_poll:
    case SYS_pause:
        return SYS_ppoll;
    case SYS_select:
        return SYS_pselect6;
    case SYS_epoll_wait:
        return SYS_epoll_pwait;
    case SYS_open:
        return SYS_openat;
    default:
        return number;
    }
}

/* All that its code and the C library call is in the common table. */
const struct filtercall attachmachine_calls[] = {{.name = NULL}};

/* --- signals ---------------------------------------------------------------------------------- */

/* mov $15, %rax; syscall: the C library's. A signal frame begins with where its handler returns
 * to. */
static const unsigned char restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

static size_t find_restorers(const struct attachtarget *target, const struct attachmapping *code,
                             uint64_t *words, size_t most) {
    size_t size = code->end - code->start;
    SCOPE_MEMORY unsigned char *bytes = malloc(size);
    const unsigned char *at = bytes;
    size_t count = 0;
    ssize_t length =
        bytes != NULL ? attachtarget_memory(target->pid, code->start, bytes, size) : -1;
    while (length > 0 && count < most &&
           (at = memmem(at, (size_t)(bytes + length - at), restorer, sizeof restorer)) != NULL) {
        words[count++] = code->start + (uint64_t)(at - bytes);
        at++;
    }
    return count;
}

size_t attachmachine_signal_words(const struct attachtarget *target, uint64_t *words, size_t most) {
    const struct attachmapping *libc = attachtarget_object(target, "libc.so.6");
    size_t count = 0;
    for (size_t i = 0; libc != NULL && i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->executable && mapping->inode == libc->inode) {
            count += find_restorers(target, mapping, words + count, most - count);
        }
    }
    return count;
}
