/* SPDX-License-Identifier: MIT */
/*
 * attachalloc.h: functions of a program that runs which allocate, named by the user (--alloc):
 * their first bytes become a jump to the runtime, and again what they were.
 *
 * The command plans (collect/allocators), the runtime makes its sites and the code beside the
 * objects ready (struct memtrace_led), and the command writes the jumps, while all threads stand
 * still and none is within the bytes. Each jump is one write within a page, by the kernel: whoever
 * is killed in between, and wherever, each function has its old bytes or its jump, whole, and all
 * that a jump leads to is there. What frees is led first, and left last.
 *
 * Called by cli/attach.c and cli/detach.c. Belongs to one thread.
 */
#ifndef COLLECT_ATTACH_ATTACHALLOC_H
#define COLLECT_ATTACH_ATTACHALLOC_H

#include "collect/attach/attachthread.h"

struct attachalloc {
    pid_t pid;
    const struct attachimage *image; /* as struct attachcall's */
    const char *own_library;         /* as struct attachcall's */
    const char *specifications;      /* one a line */
    void (*tell)(const char *line);
};

/* Nothing is touched: what cannot be followed is told. 0, or -1 with error: nothing can. */
int attachalloc_check(const struct attachalloc *request, struct error *error);
/* Once the runtime is there, whose settings have the same specifications. 0, or -1 with error: no
 * function leads there. One that has to be left alone is told. done: what is in it may grow. */
int attachalloc_lead(const struct attachalloc *request, struct attachdone *done,
                     struct error *error);
/* Every function that leads there is what it was. 0, or -1 with error; then those left lead to a
 * runtime that lets calls pass. */
int attachalloc_leave(const struct attachimage *image, const char *own_library,
                      struct attachdone *done, struct error *error);

#endif
