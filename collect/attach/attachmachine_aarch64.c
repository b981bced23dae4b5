/* SPDX-License-Identifier: MIT */
/*
 * attachmachine_aarch64.c: attachmachine.h for AArch64.
 *
 * When a thread is stopped in a system call, the kernel has already prepared it to make that call
 * again: it stands at the instruction, with its arguments. Only a call that says EINTR is over. It
 * has lost its first argument. The kernel still knows it, but newer ones do not tell it any more
 * (has_stayed).
 */
#define _GNU_SOURCE
#include "collect/attach/attachmachine.h"

#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/filtercalls.h"
#include "collect/attach/stub_aarch64.h"

#include <asm/ptrace.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

enum {
    CALL = 0xd4000001, /* svc #0 */
    CALL_BYTES = 4,
    RESULT = 0, /* registers of a call */
    NUMBER = 8,
};

/* --- registers -------------------------------------------------------------------------------- */

static int get(pid_t tid, uint32_t set, void *bytes, size_t *size) {
    struct iovec to = {bytes, *size};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &to) != 0) {
        return -1;
    }
    *size = to.iov_len;
    return 0;
}

static int set_whole(pid_t tid, uint32_t set, const void *bytes, size_t size) {
    struct iovec from = {(void *)bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)set, &from) == 0 ? 0 : -1;
}

static int get_whole(pid_t tid, uint32_t set, void *bytes, size_t size) {
    size_t got = size;
    return get(tid, set, bytes, &got) == 0 && got == size ? 0 : -1;
}

bool attachmachine_needs_look(void) {
    return true;
}

static bool is_call(pid_t pid, uint64_t pc) {
    uint32_t code = 0;
    return attachtarget_memory(pid, pc, &code, sizeof code) == sizeof code && code == CALL;
}

/* The first argument of the last system call of this thread, as /proc tells it of one that is in a
 * call: for that moment it is said to be. 0, or -1. */
static int interrupted_argument(pid_t pid, pid_t tid, int32_t number, uint64_t *argument) {
    const int32_t none = -1;
    int64_t said;
    int found;
    if (set_whole(tid, NT_ARM_SYSTEM_CALL, &number, sizeof number) != 0) {
        return -1;
    }
    SCOPE_FILE FILE *file = procfile_text("/proc/%ld/task/%ld/syscall", (long)pid, (long)tid);
    found = file != NULL ? fscanf(file, "%" SCNd64 " %" SCNx64, &said, argument) : 0;
    set_whole(tid, NT_ARM_SYSTEM_CALL, &none, sizeof none);
    return found == 2 && said == number ? 0 : -1;
}

/* Whether it was in such a call when it was looked at. No handler of a signal has begun meanwhile,
 * of which we would have been told. */
static bool is_the_same(const struct attachcallsite *before, const struct user_regs_struct *now) {
    return before != NULL && before->number >= 0 && before->number == (int64_t)now->regs[NUMBER] &&
           before->pc == now->pc && before->sp == now->sp &&
           memcmp(&before->arguments[1], &now->regs[1], 5 * sizeof now->regs[1]) == 0;
}

/* Linux 6.12.115 and newer ones say the result in the argument's place. What is known then is that
 * the thread has waited for nothing since the look but for us: for another call to have taken the
 * first one's place, that would have to end at that moment, and the other one, made from the same
 * place with the same other arguments, to find the stop before it sleeps. */
static bool has_stayed(pid_t pid, pid_t tid, const struct attachcallsite *before,
                       const struct user_regs_struct *now) {
    uint64_t first;
    uint64_t waits;
    if (interrupted_argument(pid, tid, (int32_t)before->number, &first) != 0) {
        return false;
    }
    return first == before->arguments[0] ||
           (first == now->regs[RESULT] && attachtarget_waits(pid, tid, &waits) == 0 &&
            waits == before->waits + 1);
}

static void find_cut_short(pid_t pid, pid_t tid, const struct attachcallsite *before,
                           struct attachregisters *registers) {
    const struct user_regs_struct *now = &registers->now;
    if ((int64_t)now->regs[RESULT] == -EINTR && is_the_same(before, now) &&
        is_call(pid, now->pc - CALL_BYTES) && has_stayed(pid, tid, before, now)) {
        registers->call = *before;
        registers->after.regs[RESULT] = before->arguments[0];
        registers->after.pc -= CALL_BYTES;
        registers->is_cut_short = true;
    }
}

/* For a time, not up to one. */
static bool is_sleep(const struct attachcallsite *call) {
    return call->number == SYS_nanosleep ||
           (call->number == SYS_clock_nanosleep && call->arguments[1] != TIMER_ABSTIME);
}

int attachmachine_read(pid_t pid, pid_t tid, const struct attachcallsite *before,
                       struct attachregisters *registers) {
    struct user_regs_struct now;
    uint64_t thread;
    if (get_whole(tid, NT_PRSTATUS, &now, sizeof now) != 0 ||
        get_whole(tid, NT_ARM_TLS, &thread, sizeof thread) != 0) {
        return -1;
    }
    *registers = (struct attachregisters){.now = now,
                                          .after = now,
                                          .thread = thread,
                                          .call = {.number = -1, .sp = now.sp, .pc = now.pc}};
    if (is_call(pid, now.pc)) {
        registers->call.number = (int64_t)now.regs[NUMBER];
        memcpy(registers->call.arguments, now.regs, sizeof registers->call.arguments);
        registers->is_sleep = is_sleep(&registers->call);
        registers->is_settled = registers->call.number == SYS_restart_syscall;
    } else {
        find_cut_short(pid, tid, before, registers);
    }
    return 0;
}

void attachmachine_restart(pid_t tid, const struct attachregisters *registers) {
    set_whole(tid, NT_PRSTATUS, &registers->after, sizeof registers->after);
}

/* --- leading ---------------------------------------------------------------------------------- */

/* SVE's registers have more bits than those of the record of 128, if the thread has used them since
 * its last system call. 0, or -1: more than a signal frame has room for, or not known. */
static int put_long_vectors(pid_t tid, void *record, size_t room) {
    struct {
        struct user_sve_header header;
        unsigned char registers[SVE_PT_SIZE(SVE_VQ_MAX, SVE_PT_REGS_SVE)];
    } got;
    struct sve_context *context = record;
    size_t size = sizeof got;
    size_t payload;
    if (get(tid, NT_ARM_SVE, &got, &size) != 0) {
        return errno == EINVAL ? 0 : -1; /* there are none */
    }
    if ((got.header.flags & SVE_PT_REGS_MASK) != SVE_PT_REGS_SVE) {
        return 0;
    }
    payload = SVE_SIG_REGS_SIZE(sve_vq_from_vl(got.header.vl));
    if (size < SVE_PT_REGS_OFFSET + payload || SVE_SIG_REGS_OFFSET + payload > room) {
        return -1;
    }
    context->head.magic = SVE_MAGIC;
    context->head.size = (uint32_t)((SVE_SIG_REGS_OFFSET + payload + 15) / 16 * 16);
    context->vl = got.header.vl;
    memcpy((char *)record + SVE_SIG_REGS_OFFSET, (const char *)&got + SVE_PT_REGS_OFFSET, payload);
    return 0;
}

/* In streaming mode (SME) the vectors are others, and system calls end it. */
static bool is_streaming(pid_t tid) {
    enum { STREAMING_VECTORS = 0x40b };
    struct user_sve_header header;
    size_t size = sizeof header;
    return get(tid, STREAMING_VECTORS, &header, &size) == 0 &&
           (header.flags & SVE_PT_REGS_MASK) == SVE_PT_REGS_SVE;
}

/* The rest is zero, which ends the list of records. */
static int put_vectors(pid_t tid, unsigned char *records, size_t room) {
    struct fpsimd_context *context = (void *)records;
    struct user_fpsimd_state state;
    if (is_streaming(tid) || get_whole(tid, NT_PRFPREG, &state, sizeof state) != 0) {
        return -1;
    }
    context->head.magic = FPSIMD_MAGIC;
    context->head.size = sizeof *context;
    context->fpsr = state.fpsr;
    context->fpcr = state.fpcr;
    memcpy(context->vregs, state.vregs, sizeof context->vregs);
    return put_long_vectors(tid, records + sizeof *context,
                            room - sizeof *context - sizeof(struct _aarch64_ctx));
}

_Static_assert(offsetof(struct stub_signal, context.uc_mcontext.__reserved) +
                       offsetof(struct fpsimd_context, fpsr) ==
                   STUB_SIGNAL_FPSR,
               "as stub_aarch64.h");
_Static_assert(offsetof(struct stub_signal, context.uc_mcontext.__reserved) +
                       offsetof(struct fpsimd_context, vregs) ==
                   STUB_SIGNAL_VECTORS,
               "as stub_aarch64.h");

static int save(pid_t tid, const struct user_regs_struct *after, struct stub_signal *saved) {
    mcontext_t *machine = &saved->context.uc_mcontext;
    *saved = (struct stub_signal){0};
    memcpy(machine->regs, after->regs, sizeof machine->regs);
    machine->sp = after->sp;
    machine->pc = after->pc;
    machine->pstate = after->pstate;
    return put_vectors(tid, machine->__reserved, sizeof machine->__reserved);
}

int attachmachine_lead(const struct attachimage *image, pid_t tid,
                       const struct attachregisters *registers, struct stub_frame *frame,
                       uint64_t to) {
    enum { BRANCHED_BY = 3 << 10 /* PSTATE.BTYPE: where a branch has led */, FRAME_REGISTER = 19 };
    const struct user_regs_struct *after = &registers->after;
    struct user_regs_struct led = registers->now;
    struct stub_signal saved;
    uint64_t base;
    if (after->sp % 16 != 0 || save(tid, after, &saved) != 0) {
        return -1;
    }
    frame->registers = after->sp - STUB_GAP - sizeof saved;
    frame->is_settled = registers->is_settled;
    base = (frame->registers - sizeof *frame) & ~UINT64_C(15);
    if (attachimage_write(image, frame->registers, &saved, sizeof saved) != 0 ||
        attachimage_write(image, base, frame, sizeof *frame) != 0) {
        return -1;
    }
    attachfault_at("frame");
    led.pc = to;
    led.sp = base;
    led.regs[FRAME_REGISTER] = base;
    led.pstate &= ~(uint64_t)BRANCHED_BY;
    if (set_whole(tid, NT_PRSTATUS, &led, sizeof led) != 0) {
        return -1;
    }
    attachfault_at("registers");
    return 0;
}

void attachmachine_frame(const struct attachregisters *registers, struct attachframe *frame) {
    enum { STACK_POINTER = 31 };
    const struct user_regs_struct *now = &registers->now;
    *frame = (struct attachframe){.pc = now->pc,
                                  .known = (UINT64_C(1) << (STACK_POINTER + 1)) - 1,
                                  .count = STACK_POINTER + 1,
                                  .sp = STACK_POINTER};
    memcpy(frame->values, now->regs, sizeof now->regs);
    frame->values[STACK_POINTER] = now->sp;
}

/* --- system calls ----------------------------------------------------------------------------- */

int64_t attachmachine_newer_call(int64_t number) {
    return number;
}

/* stub_aarch64.S */
const struct filtercall attachmachine_calls[] = {
    {"sigaltstack", SYS_sigaltstack, FILTERCALL_ENTER, FILTERCALL_DONE, {0, 4096}},
    {"rt_sigreturn", SYS_rt_sigreturn, FILTERCALL_ENTER, FILTERCALL_DONE, {0}},
    {.name = NULL}};

/* --- signals ---------------------------------------------------------------------------------- */

/* Each signal frame has a record of the vectors, which begins with this. */
size_t attachmachine_signal_words(const struct attachtarget *target, uint64_t *words, size_t most) {
    (void)target;
    if (most == 0) {
        return 0;
    }
    words[0] = (uint64_t)sizeof(struct fpsimd_context) << 32 | FPSIMD_MAGIC;
    return 1;
}
