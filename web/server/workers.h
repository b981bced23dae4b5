/* SPDX-License-Identifier: MIT */
/*
 * workers.h: the server's own threads: those that answer, with two queues: what takes milliseconds
 * goes before passes over the events, and passes never take the last worker; and how others are
 * started, that open sources and that watch.
 *
 * Signals are the main thread's (analyze/base/threadstart.h). Called by http.c. A task belongs to
 * its maker, who hears of its end by done(), in the worker's thread. Tasks whose asker is gone are
 * cancelled, those that still wait are done at once.
 */
#ifndef WEB_SERVER_WORKERS_H
#define WEB_SERVER_WORKERS_H

#include "analyze/base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum task_queue {
    QUEUE_INTERACTIVE, /* sums: milliseconds */
    QUEUE_PASSES,      /* goes through the events: seconds */
};

struct task {
    void (*run)(struct task *task);
    void (*done)(struct task *task); /* the task may be freed in it; it ran or was dropped */
    enum task_queue queue;
    atomic_bool cancel;
    struct task *next;
};

struct workers;

/* count 0: as many as there are processors, 2 to 4. NULL: error is set. */
struct workers *workers_start(size_t count, struct error *error);
/* Cancels everything and waits until all is done; what is put later is done at once. NULL is
 * allowed, here and below. */
void workers_end(struct workers *workers);
void workers_free(struct workers *workers);

void workers_put(struct workers *workers, struct task *task);
/* Nobody waits for it any more. It is not done yet. */
void workers_cancel(struct workers *workers, struct task *task);

/* Another thread, which has that name, for top -H and the like: less than WORKER_NAME letters. 0 or
 * -1. */
enum { WORKER_NAME = 16 };
int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);

#endif
