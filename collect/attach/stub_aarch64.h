/* SPDX-License-Identifier: MIT */
/*
 * stub_aarch64.h: what the code that runs in a program (stub_aarch64.S) reads on AArch64 besides
 * struct stub_frame: a signal frame as the kernel makes one (arch/arm64/kernel/signal.c, struct
 * rt_sigframe), which says all registers with which the thread is to go on.
 */
#ifndef COLLECT_ATTACH_STUB_AARCH64_H
#define COLLECT_ATTACH_STUB_AARCH64_H

#define STUB_SIGNAL_STACK     144
#define STUB_SIGNAL_MASK      168
#define STUB_SIGNAL_REGISTERS 312 /* x0 to x30 */
#define STUB_SIGNAL_PC        568
#define STUB_SIGNAL_FPSR      600 /* and FPCR behind it */
#define STUB_SIGNAL_VECTORS   608 /* q0 to q31 */
#define STUB_SIGNAL_SIZE      4688

#ifndef __ASSEMBLER__
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

struct stub_signal {
    siginfo_t info;
    ucontext_t context;
};

_Static_assert(offsetof(struct stub_signal, context.uc_stack) == STUB_SIGNAL_STACK, "as stub.S");
_Static_assert(offsetof(struct stub_signal, context.uc_sigmask) == STUB_SIGNAL_MASK, "as stub.S");
_Static_assert(offsetof(struct stub_signal, context.uc_mcontext.regs) == STUB_SIGNAL_REGISTERS,
               "as stub.S");
_Static_assert(offsetof(struct stub_signal, context.uc_mcontext.pc) == STUB_SIGNAL_PC, "as stub.S");
_Static_assert(sizeof(struct stub_signal) == STUB_SIGNAL_SIZE, "as stub.S");
#endif

#endif
