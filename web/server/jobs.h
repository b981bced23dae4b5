/* SPDX-License-Identifier: MIT */
/*
 * jobs.h: worker threads with two queues: what takes milliseconds goes before passes over the
 * events, and passes never take the last worker.
 *
 * Called by http.c. A job belongs to its maker, who hears of its end by done(), in the worker's
 * thread. Jobs whose asker is gone are cancelled, those that still wait are done at once.
 */
#ifndef WEB_SERVER_JOBS_H
#define WEB_SERVER_JOBS_H

#include "web/server/routes.h"

#include <stdatomic.h>

struct job {
    void (*run)(struct job *job);
    void (*done)(struct job *job); /* the job may be freed in it; it ran or was dropped */
    enum route_queue queue;
    atomic_bool cancel;
    struct job *next;
};

struct jobs;

/* workers 0: as many as there are processors, 2 to 4. NULL: error is set. */
struct jobs *jobs_start(size_t workers, struct error *error);
/* Cancels everything and waits until all is done; what is put later is done at once. NULL is
 * allowed, here and below. */
void jobs_end(struct jobs *jobs);
void jobs_free(struct jobs *jobs);

void jobs_put(struct jobs *jobs, struct job *job);
/* Nobody waits for it any more. It is not done yet. */
void jobs_cancel(struct jobs *jobs, struct job *job);

#endif
