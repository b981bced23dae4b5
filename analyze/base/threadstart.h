/* SPDX-License-Identifier: MIT */
/*
 * threadstart.h: starts a thread that no signal is sent to: those are the main thread's.
 *
 * Signals that a thread raises itself stay its own: SIGBUS of a mapped file that became shorter is
 * handled (analyze/read/filemap.h), and would end the process if it were blocked.
 *
 * Called by all tools that start threads beside one which waits for signals.
 */
#ifndef ANALYZE_BASE_THREADSTART_H
#define ANALYZE_BASE_THREADSTART_H

#include <pthread.h>

/* As pthread_create; attributes may be NULL. */
int threadstart(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *argument),
                void *argument);

#endif
