/* SPDX-License-Identifier: MIT */
/*
 * attachfilters.h: the seccomp filters of a program that is to be attached to: read from the
 * kernel, of each thread, and run over the system calls that are made there on our account.
 *
 * Called by collect/attach. To read a thread's filters it is stopped for a moment; only who has
 * CAP_SYS_ADMIN, and no filter itself, may do it.
 */
#ifndef COLLECT_ATTACH_ATTACHFILTERS_H
#define COLLECT_ATTACH_ATTACHFILTERS_H

#include "analyze/base/error.h"
#include "memtrace/seccomp.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attachfilters {
    struct memtrace_filters list;
    struct sock_filter *code; /* of all, one behind the other */
    size_t used;              /* instructions */
};

enum attachfilters_answer {
    ATTACHFILTERS_NONE = 0,    /* no thread has any */
    ATTACHFILTERS_READ = 1,    /* all are in `filters` */
    ATTACHFILTERS_UNKNOWN = 2, /* they may not be read */
    ATTACHFILTERS_STRICT = 3,  /* a thread may do nothing but read, write and end */
    ATTACHFILTERS_FAILED = -1  /* error */
};

/* Those of all threads, each once. */
enum attachfilters_answer attachfilters_read(pid_t pid, struct attachfilters *filters,
                                             struct error *error);
void attachfilters_free(struct attachfilters *filters);

/* What is to happen in the program. */
enum attachfilters_use {
    ATTACHFILTERS_ENTER = 1, /* a thread is started, and a function called */
    ATTACHFILTERS_LOAD = 2,  /* the library is loaded and sets itself up */
    ATTACHFILTERS_FILE = 4,  /* it is loaded from a file of memory */
    ATTACHFILTERS_WRITE = 8  /* the program writes its profile itself */
};

/* Whether a thread of the process has one, whether it can be read or not. */
bool attachfilters_are_there(pid_t pid);
/* The first system call that they do not let pass; NULL: all pass. */
const char *attachfilters_obstacle(const struct attachfilters *filters, unsigned uses);

#endif
