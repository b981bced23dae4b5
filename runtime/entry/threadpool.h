/* SPDX-License-Identifier: MIT */
/* threadpool.h: where the struct threads lie: memory that a forked child finds wiped. Nothing is
 * ever given back, so others may look at a struct at any time. */
#ifndef RUNTIME_ENTRY_THREADPOOL_H
#define RUNTIME_ENTRY_THREADPOOL_H

#include "runtime/entry/thread.h"

void threadpool_init(void); /* once */
void threadpool_fork(void); /* in a forked child */

/* All zeros, or NULL: no memory, or not now. Signals are blocked. */
struct thread *threadpool_take(void);
void threadpool_return(struct thread *thread);

#endif
