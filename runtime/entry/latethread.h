/* SPDX-License-Identifier: MIT */
/*
 * latethread.h: one struct thread for all who have none of their own, one at a time: a few frees of
 * the C library come after a thread's last destructor, and some threads can never be known. They
 * are counted with "others".
 */
#ifndef RUNTIME_ENTRY_LATETHREAD_H
#define RUNTIME_ENTRY_LATETHREAD_H

#include "runtime/entry/thread.h"

void latethread_init(void);
void latethread_forget(void);
void latethread_fork(void); /* in a forked child, which finds it wiped */

/* For one event, until thread_done(). NULL: it is lost. */
struct thread *latethread_join(void);
/* Where its events are recorded, by whoever has it just now. */
struct recorder_stream *latethread_stream(void);

#endif
