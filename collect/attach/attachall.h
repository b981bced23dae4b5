/* SPDX-License-Identifier: MIT */
/*
 * attachall.h: all threads of a program held at once, for a moment in which its code is changed,
 * and whether one of them stands within that code.
 *
 * Called by attachalloc.c. Belongs to one thread. If the command is killed meanwhile, all go on.
 */
#ifndef COLLECT_ATTACH_ATTACHALL_H
#define COLLECT_ATTACH_ATTACHALL_H

#include "collect/attach/attachstop.h"

struct attachall {
    pid_t pid;
    struct attachstop *threads; /* those that stand, or were asked to */
    size_t count;
};

/* All stand; or -1 with error: one does not (in a call that no signal interrupts, as vfork), or
 * there are too many, and all go on. 0: attachall_go(). */
int attachall_stop(pid_t pid, struct attachall *all, struct error *error);
/* They go on. For how long the one that was held longest was. */
uint64_t attachall_go(struct attachall *all);

/* Some bytes of code. */
struct attachall_code {
    uint64_t address, size;
};
/* For each of `count` pieces of code, by address: whether a thread goes on within it, behind its
 * first byte: now, or where a handler of a signal returns to. 0, or -1: out of memory. */
int attachall_find(const struct attachall *all, const struct attachall_code *code, size_t count,
                   bool *is_inside);

#endif
