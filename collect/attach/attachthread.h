/* SPDX-License-Identifier: MIT */
/*
 * attachthread.h: starting a thread in a program that runs, which calls one function of our library
 * there. One of its threads is stopped for that, for a fraction of a millisecond, and only where it
 * holds no lock that pthread_create needs:
 *
 *  - asleep in a system call that the C library's allocator and loader never sleep in; or
 *  - running code that belongs to neither, nor to any other allocator.
 *
 * In no case where it handles a signal, since that may have interrupted malloc, nor where it is on
 * another stack than its own. After one change of its registers it needs us no more (stub.h), so
 * that we may be killed at any moment.
 *
 * What the program gets besides settings: its own seccomp filters, for the runtime to ask them, and
 * the library where the program cannot open ours (a container, another root): as a file of memory
 * that the new thread has made, which we fill and seal.
 *
 * Called by cli/attach and attachalloc.c. Belongs to one thread.
 */
#ifndef COLLECT_ATTACH_ATTACHTHREAD_H
#define COLLECT_ATTACH_ATTACHTHREAD_H

#include "analyze/base/error.h"
#include "collect/attach/attachfilters.h"
#include "collect/attach/attachtarget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attachcall {
    pid_t pid;
    const struct attachimage *image; /* of that process, all of this is about */
    const char *library;             /* to be loaded if it is not there; NULL: it is */
    const char *own_library;         /* ours, to compare with what is there; NULL: none */
    const char *entry;               /* the function's name */
    const char *settings;            /* its argument: strings, an empty one at the end */
    size_t settings_size;
    bool is_hidden; /* the program cannot open the library: it gets it as a file of memory */
    const struct attachfilters *filters; /* that the library is to know of; NULL: none */
    /* Called now and then while the function is at work, until it returns true; settings: where
     * they lie in the program. However long it takes counts as no time. NULL: none. */
    bool (*meanwhile)(void *context, uint64_t settings);
    void *context;
};

struct attachdone {
    int result;       /* of the function */
    uint64_t held_ns; /* for so long a thread was held at most, also one that was of no use */
};

/* Whether it is known how on this machine. */
bool attachthread_is_possible(void);
/* 0, or -1 with error: the program goes on as before. */
int attachthread_call(const struct attachcall *call, struct attachdone *done, struct error *error);

/* The address of the function in the library that is there, however it came there; 0: not known. */
uint64_t attachthread_function(const struct attachtarget *target, const struct attachmapping *own,
                               const struct attachcall *call);

#endif
