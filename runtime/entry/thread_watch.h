/* SPDX-License-Identifier: MIT */
/* thread_watch.h: memtrace_watch_begin() and _end(), for entry/: what a watched thread allocates.
 */
#ifndef RUNTIME_ENTRY_THREAD_WATCH_H
#define RUNTIME_ENTRY_THREAD_WATCH_H

#include "runtime/entry/thread.h"

/* Of a thread that is_watched, inside the event. */
void thread_watch_alloc(struct thread *thread, const void *address, uint64_t size,
                        uint32_t context);
/* The calling thread ends. */
void thread_watch_end_thread(void);

#endif
