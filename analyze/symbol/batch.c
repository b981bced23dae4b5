/* SPDX-License-Identifier: MIT */
/*
 * batch.c: a few threads that take jobs off a list. See batch.h.
 *
 * A job is a run of addresses of one module. Large runs are cut, so that one large module keeps
 * every thread busy; each then has a handle of its own on the file.
 */
#include "analyze/symbol/batch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    SMALLEST_CUT = 512,     /* addresses; below this a second handle costs more than it saves */
    SMALLEST_THREADED = 64, /* addresses; below this threads are not worth starting */
    PROGRESS_EVERY_NS = 100000000,
    THREADS_LIMIT = 64
};

struct job {
    size_t first;
    size_t end;
};

struct batch {
    struct batch_item *items;
    struct job *jobs;
    size_t job_count;
    atomic_size_t next_job;
    atomic_size_t done; /* items */
    atomic_bool failed;
    pthread_mutex_t lock; /* guards running */
    pthread_cond_t ended; /* running became 0 */
    unsigned running;
};

static void do_job(struct batch *batch, const struct job *job) {
    struct lookup *lookup = modulesymbols_take(batch->items[job->first].module);
    for (size_t i = job->first; i < job->end && lookup; i++) {
        batch->items[i].frames = modulesymbols_frames(lookup, batch->items[i].offset);
        if (!batch->items[i].frames)
            atomic_store(&batch->failed, true);
        atomic_fetch_add_explicit(&batch->done, 1, memory_order_relaxed);
    }
    if (lookup)
        modulesymbols_give_back(lookup);
    else
        atomic_store(&batch->failed, true);
}

static void work(struct batch *batch) {
    size_t job;
    while ((job = atomic_fetch_add(&batch->next_job, 1)) < batch->job_count)
        do_job(batch, &batch->jobs[job]);
}

static void *run_worker(void *argument) {
    struct batch *batch = argument;
    work(batch);
    pthread_mutex_lock(&batch->lock);
    if (--batch->running == 0)
        pthread_cond_signal(&batch->ended);
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* Cuts the items into jobs. 0 or -1 (out of memory). */
static int make_jobs(struct batch *batch, size_t count, unsigned threads) {
    size_t largest = count / (threads * 2) + 1;
    if (largest < SMALLEST_CUT)
        largest = SMALLEST_CUT;
    size_t room = 0;
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && end - first < largest &&
               batch->items[end].module == batch->items[first].module)
            end++;
        if (batch->job_count == room) {
            room = room ? room * 2 : 64;
            struct job *jobs = realloc(batch->jobs, room * sizeof *jobs);
            if (!jobs)
                return -1;
            batch->jobs = jobs;
        }
        batch->jobs[batch->job_count++] = (struct job){first, end};
        first = end;
    }
    return 0;
}

/* Until the last worker has ended: tells the caller how far it is. */
static void wait_workers(struct batch *batch, size_t count, symbol_progress progress,
                         void *context) {
    pthread_mutex_lock(&batch->lock);
    while (batch->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PROGRESS_EVERY_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_cond_timedwait(&batch->ended, &batch->lock, &until) != ETIMEDOUT || !progress)
            continue;
        pthread_mutex_unlock(&batch->lock);
        progress(context, atomic_load(&batch->done), count);
        pthread_mutex_lock(&batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
}

static void run_workers(struct batch *batch, unsigned threads, size_t count,
                        symbol_progress progress, void *context) {
    pthread_t workers[THREADS_LIMIT];
    unsigned started = 0;
    pthread_mutex_lock(&batch->lock);
    while (started < threads && pthread_create(&workers[started], NULL, run_worker, batch) == 0)
        started++;
    batch->running = started;
    pthread_mutex_unlock(&batch->lock);
    if (started == 0)
        work(batch);
    wait_workers(batch, count, progress, context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

int batch_resolve(struct batch_item *items, size_t count, unsigned threads,
                  symbol_progress progress, void *context) {
    struct batch batch = {.items = items};
    if (threads > THREADS_LIMIT)
        threads = THREADS_LIMIT;
    if (make_jobs(&batch, count, threads) != 0) {
        free(batch.jobs);
        return -1;
    }
    pthread_mutex_init(&batch.lock, NULL);
    pthread_cond_init(&batch.ended, NULL);
    /* With a progress line the work needs a thread of its own even on one CPU. */
    bool alone = count < SMALLEST_THREADED || (threads < 2 && !progress);
    if (alone)
        work(&batch);
    else
        run_workers(&batch, threads < batch.job_count ? threads : (unsigned)batch.job_count, count,
                    progress, context);
    if (progress)
        progress(context, count, count);
    pthread_cond_destroy(&batch.ended);
    pthread_mutex_destroy(&batch.lock);
    free(batch.jobs);
    return atomic_load(&batch.failed) ? -1 : 0;
}
