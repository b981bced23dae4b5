/* SPDX-License-Identifier: MIT */
/* jobs.c: see jobs.h. */
#include "web/server/jobs.h"

#include "web/server/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_WORKERS = 2, MOST_WORKERS = 4, QUEUES = 2 };

struct job_list {
    struct job *first;
    struct job **last;
};

struct jobs {
    pthread_mutex_t lock;
    pthread_cond_t is_more;
    struct job_list waiting[QUEUES];
    struct job *running[MOST_WORKERS];
    size_t passes; /* that run */
    pthread_t threads[MOST_WORKERS];
    size_t count;
    bool stops;
};

static void job_list_append(struct job_list *list, struct job *job) {
    job->next = NULL;
    *list->last = job;
    list->last = &job->next;
}

static struct job *take_first(struct job_list *list) {
    struct job *job = list->first;
    list->first = job->next;
    if (list->first == NULL) {
        list->last = &list->first;
    }
    return job;
}

/* One that nobody waits for any more: it is done at once, whatever runs. */
static struct job *take_cancelled(struct job_list *list) {
    for (struct job **at = &list->first; *at != NULL; at = &(*at)->next) {
        struct job *job = *at;
        if (atomic_load(&job->cancel)) {
            *at = job->next;
            if (list->last == &job->next) {
                list->last = at;
            }
            return job;
        }
    }
    return NULL;
}

/* NULL: nothing that may be begun. */
static struct job *next_job(struct jobs *jobs) {
    for (size_t i = 0; i < QUEUES; i++) {
        struct job *job = take_cancelled(&jobs->waiting[i]);
        if (job != NULL) {
            return job;
        }
    }
    if (jobs->waiting[QUEUE_INTERACTIVE].first != NULL) {
        return take_first(&jobs->waiting[QUEUE_INTERACTIVE]);
    }
    if (jobs->waiting[QUEUE_PASSES].first != NULL && jobs->passes + 1 < jobs->count) {
        return take_first(&jobs->waiting[QUEUE_PASSES]);
    }
    return NULL;
}

static void note_pass(struct jobs *jobs, const struct job *job, bool begins) {
    if (job->queue == QUEUE_PASSES) {
        jobs->passes += begins ? 1 : (size_t)-1;
    }
}

/* The lock is held when it is called and when it returns. */
static void jobs_run_one(struct jobs *jobs, size_t worker, struct job *job) {
    note_pass(jobs, job, true);
    jobs->running[worker] = job;
    pthread_mutex_unlock(&jobs->lock);
    if (!atomic_load(&job->cancel)) {
        job->run(job);
    }
    pthread_mutex_lock(&jobs->lock);
    jobs->running[worker] = NULL;
    note_pass(jobs, job, false);
    pthread_cond_broadcast(&jobs->is_more); /* a pass that waits may be begun now */
    pthread_mutex_unlock(&jobs->lock);
    job->done(job);
    pthread_mutex_lock(&jobs->lock);
}

struct worker {
    struct jobs *jobs;
    size_t number;
};

static void *jobs_work(void *argument) {
    struct worker self = *(struct worker *)argument;
    struct jobs *jobs = self.jobs;
    free(argument);
    pthread_mutex_lock(&jobs->lock);
    for (;;) {
        struct job *job = next_job(jobs);
        if (job != NULL) {
            jobs_run_one(jobs, self.number, job);
        } else if (jobs->stops) {
            break;
        } else {
            pthread_cond_wait(&jobs->is_more, &jobs->lock);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

static int start_worker(struct jobs *jobs, size_t number) {
    struct worker *worker = malloc(sizeof *worker);
    int result;
    if (worker == NULL) {
        return -1;
    }
    *worker = (struct worker){jobs, number};
    result = worker_start(&jobs->threads[number], "worker", jobs_work, worker);
    if (result != 0) {
        free(worker);
    }
    return result;
}

static size_t usual_workers(void) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < LEAST_WORKERS  ? LEAST_WORKERS
           : processors > MOST_WORKERS ? MOST_WORKERS
                                       : (size_t)processors;
}

struct jobs *jobs_start(size_t workers, struct error *error) {
    struct jobs *jobs = calloc(1, sizeof *jobs);
    size_t wanted = workers != 0 ? workers : usual_workers();
    if (jobs == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->is_more, NULL);
    for (size_t i = 0; i < QUEUES; i++) {
        jobs->waiting[i].last = &jobs->waiting[i].first;
    }
    pthread_mutex_lock(&jobs->lock); /* count is set before any of them looks */
    while (jobs->count < wanted && jobs->count < MOST_WORKERS &&
           start_worker(jobs, jobs->count) == 0) {
        jobs->count++;
    }
    pthread_mutex_unlock(&jobs->lock);
    if (jobs->count < LEAST_WORKERS) {
        jobs_end(jobs);
        jobs_free(jobs);
        error_set(error, "cannot start threads");
        return NULL;
    }
    return jobs;
}

void jobs_end(struct jobs *jobs) {
    if (jobs == NULL) {
        return;
    }
    pthread_mutex_lock(&jobs->lock);
    jobs->stops = true;
    for (size_t i = 0; i < MOST_WORKERS; i++) {
        if (jobs->running[i] != NULL) {
            atomic_store(&jobs->running[i]->cancel, true);
        }
    }
    for (size_t i = 0; i < QUEUES; i++) {
        for (struct job *job = jobs->waiting[i].first; job != NULL; job = job->next) {
            atomic_store(&job->cancel, true);
        }
    }
    pthread_cond_broadcast(&jobs->is_more);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->count; i++) {
        pthread_join(jobs->threads[i], NULL);
    }
    jobs->count = 0;
}

void jobs_free(struct jobs *jobs) {
    if (jobs == NULL) {
        return;
    }
    pthread_cond_destroy(&jobs->is_more);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

void jobs_cancel(struct jobs *jobs, struct job *job) {
    pthread_mutex_lock(&jobs->lock);
    atomic_store(&job->cancel, true);
    pthread_cond_broadcast(&jobs->is_more);
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_put(struct jobs *jobs, struct job *job) {
    bool stops;
    pthread_mutex_lock(&jobs->lock);
    stops = jobs->stops;
    if (!stops) {
        job_list_append(&jobs->waiting[job->queue], job);
        pthread_cond_broadcast(&jobs->is_more);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (stops) {
        job->done(job);
    }
}
