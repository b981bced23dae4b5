/* SPDX-License-Identifier: MIT */
/* workers.c: see workers.h. */
#include "web/server/workers.h"

#include "analyze/base/threadstart.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_WORKERS = 2, MOST_WORKERS = 4, QUEUES = 2 };

struct task_list {
    struct task *first;
    struct task **last;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t is_more;
    struct task_list waiting[QUEUES];
    struct task *running[MOST_WORKERS];
    size_t passes; /* that run */
    pthread_t threads[MOST_WORKERS];
    size_t count;
    bool stops;
};

static void task_list_append(struct task_list *list, struct task *task) {
    task->next = NULL;
    *list->last = task;
    list->last = &task->next;
}

static struct task *take_first(struct task_list *list) {
    struct task *task = list->first;
    list->first = task->next;
    if (list->first == NULL) {
        list->last = &list->first;
    }
    return task;
}

/* One that nobody waits for any more: it is done at once, whatever runs. */
static struct task *take_cancelled(struct task_list *list) {
    for (struct task **at = &list->first; *at != NULL; at = &(*at)->next) {
        struct task *task = *at;
        if (atomic_load(&task->cancel)) {
            *at = task->next;
            if (list->last == &task->next) {
                list->last = at;
            }
            return task;
        }
    }
    return NULL;
}

/* NULL: nothing that may be begun. */
static struct task *next_task(struct workers *workers) {
    for (size_t i = 0; i < QUEUES; i++) {
        struct task *task = take_cancelled(&workers->waiting[i]);
        if (task != NULL) {
            return task;
        }
    }
    if (workers->waiting[QUEUE_INTERACTIVE].first != NULL) {
        return take_first(&workers->waiting[QUEUE_INTERACTIVE]);
    }
    if (workers->waiting[QUEUE_PASSES].first != NULL && workers->passes + 1 < workers->count) {
        return take_first(&workers->waiting[QUEUE_PASSES]);
    }
    return NULL;
}

static void note_pass(struct workers *workers, const struct task *task, bool begins) {
    if (task->queue == QUEUE_PASSES) {
        workers->passes += begins ? 1 : (size_t)-1;
    }
}

/* The lock is held when it is called and when it returns. */
static void workers_run_one(struct workers *workers, size_t worker, struct task *task) {
    note_pass(workers, task, true);
    workers->running[worker] = task;
    pthread_mutex_unlock(&workers->lock);
    if (!atomic_load(&task->cancel)) {
        task->run(task);
    }
    pthread_mutex_lock(&workers->lock);
    workers->running[worker] = NULL;
    note_pass(workers, task, false);
    pthread_cond_broadcast(&workers->is_more); /* a pass that waits may be begun now */
    pthread_mutex_unlock(&workers->lock);
    task->done(task);
    pthread_mutex_lock(&workers->lock);
}

struct worker {
    struct workers *workers;
    size_t number;
};

static void *workers_work(void *argument) {
    struct worker self = *(struct worker *)argument;
    struct workers *workers = self.workers;
    free(argument);
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct task *task = next_task(workers);
        if (task != NULL) {
            workers_run_one(workers, self.number, task);
        } else if (workers->stops) {
            break;
        } else {
            pthread_cond_wait(&workers->is_more, &workers->lock);
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument),
                 void *argument) {
    int result = threadstart(thread, NULL, run, argument);
    if (result == 0) {
        pthread_setname_np(*thread, name);
    }
    return result == 0 ? 0 : -1;
}

static int start_worker(struct workers *workers, size_t number) {
    struct worker *worker = malloc(sizeof *worker);
    int result;
    if (worker == NULL) {
        return -1;
    }
    *worker = (struct worker){workers, number};
    result = worker_start(&workers->threads[number], "worker", workers_work, worker);
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

struct workers *workers_start(size_t count, struct error *error) {
    struct workers *workers = calloc(1, sizeof *workers);
    size_t wanted = count != 0 ? count : usual_workers();
    if (workers == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->is_more, NULL);
    for (size_t i = 0; i < QUEUES; i++) {
        workers->waiting[i].last = &workers->waiting[i].first;
    }
    pthread_mutex_lock(&workers->lock); /* count is set before any of them looks */
    while (workers->count < wanted && workers->count < MOST_WORKERS &&
           start_worker(workers, workers->count) == 0) {
        workers->count++;
    }
    pthread_mutex_unlock(&workers->lock);
    if (workers->count < LEAST_WORKERS) {
        workers_end(workers);
        workers_free(workers);
        error_set(error, "cannot start threads");
        return NULL;
    }
    return workers;
}

void workers_end(struct workers *workers) {
    if (workers == NULL) {
        return;
    }
    pthread_mutex_lock(&workers->lock);
    workers->stops = true;
    for (size_t i = 0; i < MOST_WORKERS; i++) {
        if (workers->running[i] != NULL) {
            atomic_store(&workers->running[i]->cancel, true);
        }
    }
    for (size_t i = 0; i < QUEUES; i++) {
        for (struct task *task = workers->waiting[i].first; task != NULL; task = task->next) {
            atomic_store(&task->cancel, true);
        }
    }
    pthread_cond_broadcast(&workers->is_more);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->count; i++) {
        pthread_join(workers->threads[i], NULL);
    }
    workers->count = 0;
}

void workers_free(struct workers *workers) {
    if (workers == NULL) {
        return;
    }
    pthread_cond_destroy(&workers->is_more);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void workers_cancel(struct workers *workers, struct task *task) {
    pthread_mutex_lock(&workers->lock);
    atomic_store(&task->cancel, true);
    pthread_cond_broadcast(&workers->is_more);
    pthread_mutex_unlock(&workers->lock);
}

void workers_put(struct workers *workers, struct task *task) {
    bool stops;
    pthread_mutex_lock(&workers->lock);
    stops = workers->stops;
    if (!stops) {
        task_list_append(&workers->waiting[task->queue], task);
        pthread_cond_broadcast(&workers->is_more);
    }
    pthread_mutex_unlock(&workers->lock);
    if (stops) {
        task->done(task);
    }
}
