/* SPDX-License-Identifier: MIT */
/* syncing.c: a few threads that call fdatasync(). See syncing.h. */
#include "stream/syncing.h"

#include "analyze/base/scope.h"
#include "analyze/base/threadstart.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* File systems commit what several ask for at once together: more threads make fewer commits. */
enum { THREADS = 4, STACK_BYTES = 256 << 10, PATIENCE_S = 5 };

struct queue {
    struct sync_job *first, **last;
};

struct syncing {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    struct queue asked, done;
    struct sync_job *all; /* those two, and what the threads have */
    bool is_over;
    int event; /* counts those that are done */
    size_t threads;
    pthread_t thread[THREADS];
};

/* ---- Jobs ---- */

static void queue_append(struct queue *queue, struct sync_job *job) {
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
}

static struct sync_job *queue_take(struct queue *queue) {
    struct sync_job *job = queue->first;
    if (job != NULL) {
        queue->first = job->next;
        if (queue->first == NULL) {
            queue->last = &queue->first;
        }
    }
    return job;
}

static void close_folders(struct sync_job *job) {
    for (size_t i = 0; i < SYNCING_FOLDERS; i++) {
        scope_close(&job->folders[i]);
        job->folders[i] = -1;
    }
}

void syncing_free_job(struct sync_job *job) {
    close_folders(job);
    scope_close(&job->fd);
    free(job);
}

static bool syncing_is_file(const struct sync_job *job, const struct stat *status) {
    return job->device == (uint64_t)status->st_dev && job->inode == (uint64_t)status->st_ino;
}

bool syncing_is_of(const struct sync_job *job, int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && syncing_is_file(job, &status);
}

uint64_t syncing_cut(const struct sync_job *job) {
    struct stat status;
    return fstat(job->fd, &status) == 0 && (uint64_t)status.st_size > job->safe &&
                   ftruncate(job->fd, (off_t)job->safe) == 0
               ? (uint64_t)status.st_size - job->safe
               : 0;
}

static void syncing_do(struct sync_job *job) {
    job->reason = fdatasync(job->fd) == 0 ? 0 : errno;
    for (size_t i = 0; i < SYNCING_FOLDERS && job->reason == 0; i++) {
        if (job->folders[i] >= 0 && fsync(job->folders[i]) != 0) {
            job->reason = errno;
        }
    }
    close_folders(job);
}

static void *syncing_work(void *argument) {
    static const uint64_t one = 1;
    struct syncing *syncing = argument;
    pthread_mutex_lock(&syncing->lock);
    for (;;) {
        struct sync_job *job = queue_take(&syncing->asked);
        if (job == NULL && syncing->is_over) {
            break;
        }
        if (job == NULL) {
            pthread_cond_wait(&syncing->more, &syncing->lock);
            continue;
        }
        pthread_mutex_unlock(&syncing->lock);
        syncing_do(job);
        pthread_mutex_lock(&syncing->lock);
        queue_append(&syncing->done, job);
        while (write(syncing->event, &one, sizeof one) < 0 && errno == EINTR) {
        }
    }
    pthread_mutex_unlock(&syncing->lock);
    return NULL;
}

/* 0, or -1: errno. */
static int take_descriptors(struct sync_job *job, int fd, const int folders[SYNCING_FOLDERS]) {
    struct stat status;
    bool failed;
    job->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    failed = job->fd < 0 || fstat(job->fd, &status) != 0;
    for (size_t i = 0; i < SYNCING_FOLDERS; i++) {
        job->folders[i] = folders[i] >= 0 && !failed ? fcntl(folders[i], F_DUPFD_CLOEXEC, 0) : -1;
        failed = failed || (folders[i] >= 0 && job->folders[i] < 0);
    }
    if (!failed) {
        job->device = (uint64_t)status.st_dev;
        job->inode = (uint64_t)status.st_ino;
    }
    return failed ? -1 : 0;
}

struct sync_job *syncing_begin(struct syncing *syncing, void *owner, uint64_t target, uint64_t safe,
                               int fd, const int folders[SYNCING_FOLDERS]) {
    struct sync_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->owner = owner;
    job->target = target;
    job->safe = safe;
    if (take_descriptors(job, fd, folders) != 0) {
        int reason = errno;
        syncing_free_job(job);
        errno = reason;
        return NULL;
    }
    pthread_mutex_lock(&syncing->lock);
    job->next_of_all = syncing->all;
    syncing->all = job;
    queue_append(&syncing->asked, job);
    pthread_cond_signal(&syncing->more);
    pthread_mutex_unlock(&syncing->lock);
    return job;
}

bool syncing_has(struct syncing *syncing, int fd) {
    struct stat status;
    const struct sync_job *job;
    if (fstat(fd, &status) != 0) {
        return false;
    }
    pthread_mutex_lock(&syncing->lock);
    job = syncing->all;
    while (job != NULL && !syncing_is_file(job, &status)) {
        job = job->next_of_all;
    }
    pthread_mutex_unlock(&syncing->lock);
    return job != NULL;
}

struct sync_job *syncing_take(struct syncing *syncing) {
    uint64_t count;
    struct sync_job *job;
    pthread_mutex_lock(&syncing->lock);
    job = queue_take(&syncing->done);
    if (job == NULL) {
        /* Under the lock: none that is done later is forgotten with it. */
        while (read(syncing->event, &count, sizeof count) < 0 && errno == EINTR) {
        }
    } else {
        struct sync_job **at = &syncing->all;
        while (*at != job) {
            at = &(*at)->next_of_all;
        }
        *at = job->next_of_all;
    }
    pthread_mutex_unlock(&syncing->lock);
    return job;
}

int syncing_fd(const struct syncing *syncing) {
    return syncing->event;
}

/* ---- Beginning and end ---- */

/* Signals are for the thread that looks whether it is to stop. 0, or errno. */
static int syncing_start(struct syncing *syncing) {
    pthread_attr_t attributes;
    int reason = pthread_attr_init(&attributes);
    if (reason != 0) {
        return reason;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (syncing->threads < THREADS && reason == 0) {
        reason =
            threadstart(&syncing->thread[syncing->threads], &attributes, syncing_work, syncing);
        syncing->threads += reason == 0;
    }
    pthread_attr_destroy(&attributes);
    return syncing->threads != 0 ? 0 : reason;
}

struct syncing *syncing_new(struct error *error) {
    struct syncing *syncing = calloc(1, sizeof *syncing);
    int reason;
    if (syncing == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&syncing->lock, NULL);
    pthread_cond_init(&syncing->more, NULL);
    syncing->asked.last = &syncing->asked.first;
    syncing->done.last = &syncing->done.first;
    syncing->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    reason = syncing->event < 0 ? errno : syncing_start(syncing);
    if (reason != 0) {
        error_set(error, "no thread can be started that writes to the disk: %s", strerror(reason));
        syncing_free(syncing);
        return NULL;
    }
    return syncing;
}

/* Whether all threads have ended, which they do when nothing is left to do. */
static bool syncing_have_ended(struct syncing *syncing) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    for (size_t i = 0; i < syncing->threads; i++) {
        if (pthread_clockjoin_np(syncing->thread[i], NULL, CLOCK_MONOTONIC, &until) != 0) {
            return false;
        }
    }
    return true;
}

size_t syncing_free(struct syncing *syncing) {
    struct sync_job *job;
    size_t left = 0;
    bool ended;
    if (syncing == NULL) {
        return 0;
    }
    pthread_mutex_lock(&syncing->lock);
    syncing->is_over = true;
    pthread_cond_broadcast(&syncing->more);
    pthread_mutex_unlock(&syncing->lock);
    ended = syncing_have_ended(syncing);
    while ((job = syncing_take(syncing)) != NULL) {
        if (job->reason != 0) {
            syncing_cut(job);
        }
        syncing_free_job(job);
    }
    if (!ended) { /* its threads go with the process */
        pthread_mutex_lock(&syncing->lock);
        for (job = syncing->all; job != NULL; job = job->next_of_all) {
            left++;
        }
        pthread_mutex_unlock(&syncing->lock);
        return left;
    }
    scope_close(&syncing->event);
    pthread_cond_destroy(&syncing->more);
    pthread_mutex_destroy(&syncing->lock);
    free(syncing);
    return 0;
}
