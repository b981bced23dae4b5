/* SPDX-License-Identifier: MIT */
/*
 * worker.h: starts the server's own threads: those that answer, that open sources, that watch.
 *
 * Signals are the main thread's (analyze/base/threadstart.h).
 */
#ifndef WEB_SERVER_WORKER_H
#define WEB_SERVER_WORKER_H

#include <pthread.h>

enum { WORKER_NAME = 16 };

/* The thread has that name, for top -H and the like: less than WORKER_NAME letters. 0 or -1. */
int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);

#endif
