/* SPDX-License-Identifier: MIT */
/*
 * attachmachine.h: what differs from one CPU to another where a thread of another program is
 * stopped, led elsewhere and let go. Each has attachmachine_x.c and the code that it is led to,
 * stub_x.S; the build takes those of its machine, and attachnone.c where there are none.
 *
 * Called by attachstop.c, attachthread.c and attachfilters.c. All of it is asked about a thread
 * that stands still, unless it says otherwise.
 */
#ifndef COLLECT_ATTACH_ATTACHMACHINE_H
#define COLLECT_ATTACH_ATTACHMACHINE_H

#include "collect/attach/attachtarget.h"
#include "collect/attach/stub.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* A system call that a thread sleeps in, as /proc tells it of one that does. */
struct attachcallsite {
    int64_t number; /* -1: none */
    uint64_t arguments[6], sp, pc;
    uint64_t waits; /* before the look that saw it: attachtarget_waits() */
};

struct attachregisters {
    struct user_regs_struct now;   /* as the kernel has them */
    struct user_regs_struct after; /* with which it goes on as if it had not been stopped */
    struct attachcallsite call;    /* the stop has interrupted it, or it is about to be made */
    uint64_t thread;               /* where the C library's record of the thread lies */
    bool is_over;                  /* the call was interrupted, but it has a result */
    bool is_cut_short; /* it would return early, by our doing, if `after` were not set */
    bool is_sleep;     /* the kernel alone knows how much is left of it (attachstop.c, settle) */
    bool is_settled;   /* it goes on with restart_syscall, which needs no argument */
};

/* Registers of a thread by their numbers in DWARF, as far as they are known; in frames outwards,
 * too. */
enum { ATTACHFRAME_REGISTERS = 33 };

struct attachframe {
    uint64_t pc;
    uint64_t values[ATTACHFRAME_REGISTERS];
    uint64_t known; /* a bit each */
    unsigned count, sp;
};

void attachmachine_frame(const struct attachregisters *registers, struct attachframe *frame);

/* Whether a thread has to be looked at right before it is stopped, since its registers do not tell
 * afterwards whether it slept in a call. */
bool attachmachine_needs_look(void);
/* before: what that look has seen; NULL: no call. 0, or -1. */
int attachmachine_read(pid_t pid, pid_t tid, const struct attachcallsite *before,
                       struct attachregisters *registers);
/* It gets `after`. */
void attachmachine_restart(pid_t tid, const struct attachregisters *registers);
/* What is to be restored, and the frame, go to its stack, below `after`; then it is led to that
 * code, which is in this image: the process's, as was asked since it stands. 0, or -1: it stands as
 * it stood. */
int attachmachine_lead(const struct attachimage *image, pid_t tid,
                       const struct attachregisters *registers, struct stub_frame *frame,
                       uint64_t to);

/* Of a system call: the one that newer machines have in its place. */
int64_t attachmachine_newer_call(int64_t number);

/* Words of which one lies on the stack where a signal is handled: how many were found, at most
 * `most`. Asked before anything is stopped. */
size_t attachmachine_signal_words(const struct attachtarget *target, uint64_t *words, size_t most);

#endif
