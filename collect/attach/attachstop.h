/* SPDX-License-Identifier: MIT */
/*
 * attachstop.h: stopping one thread of a program for a moment, and whether it may be led elsewhere
 * from where it stands (attachthread.h says when). Called by attachthread.c and attachfilters.c.
 */
#ifndef COLLECT_ATTACH_ATTACHSTOP_H
#define COLLECT_ATTACH_ATTACHSTOP_H

#include "collect/attach/attachmachine.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/attachwalk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ATTACHSTOP_THREADS = 1024, ATTACHSTOP_SIGNAL_WORDS = 8, ATTACHSTOP_FUNCTIONS = 40 };

/* What is looked up before anything is stopped. */
struct attachsafety {
    const struct attachtarget *target;
    uint64_t signal_words[ATTACHSTOP_SIGNAL_WORDS]; /* on a stack with a signal's frame */
    size_t signal_word_count;
    uint64_t allocators[16]; /* inodes of objects that define malloc or pthread_create */
    size_t allocator_count;
    uint64_t libc, loader, own;     /* inodes; 0: it has none */
    struct attachrange own_syscall; /* our syscall(), in which the program's threads sleep */
    bool has_allocator;             /* other than the C library's and ours */
    /* Of the C library, that hold locks of its heap or of its threads. */
    struct attachrange heap_functions[ATTACHSTOP_FUNCTIONS];
    struct attachrange wait_functions[ATTACHSTOP_FUNCTIONS]; /* that have none */
    uint64_t *stack;         /* for a stack to be read into; NULL: out of memory */
    struct attachwalk *walk; /* NULL: out of memory */
    uint64_t code;           /* a sum over what is mapped of files */
    uint64_t stack_limit;    /* of the first thread's, in bytes */
    bool may_wait;           /* for threads that do not hear it yet (vfork) */
};
void attachsafety_find(const struct attachtarget *target, struct attachsafety *safety);
/* The same program later: true where that has the same code, and `target` is what is looked at from
 * then on. */
bool attachsafety_renew(struct attachsafety *safety, const struct attachtarget *target);
void attachsafety_free(struct attachsafety *safety);

struct attachstop {
    pid_t pid, tid;
    struct attachregisters registers;
    bool is_safe;
    int signal;                   /* that it was just getting; 0: none */
    uint64_t asked_ns;            /* when it was asked to stop */
    struct attachcallsite before; /* what a look right before has seen (attachmachine_needs_look) */
    bool has_looked;
    bool stands; /* attachstop_await() was 0 */
};

/* The program's threads, at most ATTACHSTOP_THREADS. */
size_t attachstop_threads(pid_t pid, pid_t tids[ATTACHSTOP_THREADS]);
/* Without stopping it: whether there is any use in it. may_run: also of a thread that does not
 * sleep, or whose sleep may become longer. */
bool attachstop_may(const struct attachsafety *safety, pid_t tid, bool may_run);
/* 0, and it stands; or -1: it does not. */
int attachstop_begin(const struct attachsafety *safety, pid_t tid, bool may_run,
                     struct attachstop *stop);
/* The same wherever it stands, to be asked something and to go on from there. */
int attachstop_hold(pid_t pid, pid_t tid, struct attachstop *stop);
/* The same in two steps, so that others are asked meanwhile. 0, or -1: it has gone, or is waited
 * for in vain. attachstop_end() where the first was 0. */
int attachstop_ask(pid_t pid, pid_t tid, struct attachstop *stop);
int attachstop_await(struct attachstop *stop);
/* It goes on: from where it stood, or from where it was led. For how long it was held, from when it
 * was asked to stop. */
uint64_t attachstop_end(const struct attachstop *stop, bool is_led);

#endif
