/* SPDX-License-Identifier: MIT */
/*
 * worker.h: starts the server's own threads: those that answer, that open sources, that watch.
 *
 * Signals that are sent are for the main thread, which waits for them. Those that a thread raises
 * itself stay its own: SIGBUS of a mapped file that became shorter is handled in analyze/read
 * (profile.c), and would end the process if it were blocked.
 */
#ifndef WEB_SERVER_WORKER_H
#define WEB_SERVER_WORKER_H

#include <pthread.h>

enum { WORKER_NAME = 16 };

/* The thread has that name, for top -H and the like: less than WORKER_NAME letters. 0 or -1. */
int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);

#endif
