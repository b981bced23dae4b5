/* SPDX-License-Identifier: MIT */
/*
 * threadpool.h: where the struct threads lie: memory that a forked child finds wiped. Nothing of it
 * is ever given back, so others may look at a struct at any time. And walkers, of which a few are
 * kept for the next threads: to map, touch and unmap one costs more than all else about a thread.
 */
#ifndef RUNTIME_ENTRY_THREADPOOL_H
#define RUNTIME_ENTRY_THREADPOOL_H

#include "runtime/entry/thread.h"

void threadpool_init(void); /* once */
void threadpool_fork(void); /* in a forked child */
/* Every thread is unknown again, and no walker is there: none is inside. */
void threadpool_wipe(void);
/* Whether another thread is in the slow half of an event, or was when it left by a longjmp. */
int threadpool_is_any_inside(void);

/* All zeros, or NULL: no memory, or not now. Signals are blocked. */
struct thread *threadpool_take(void);
void threadpool_return(struct thread *thread);

/* To be initialised; NULL: no memory. Signals are blocked. */
struct walker *threadpool_take_walker(void);
/* Its thread is gone. */
void threadpool_return_walker(struct walker *walker);

#endif
