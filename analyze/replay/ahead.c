/* SPDX-License-Identifier: MIT */
/* ahead.c: reads a recording ahead of its replay. See ahead.h. */
#include "analyze/replay/ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    BATCHES = 16,
    LOOKS = 3000,
    FEW = BATCHES / 4, /* who has waited goes on only when there is something to do for a while */
};

/* Batches [read, written) are full; the one before `read` is the replay's, the others are empty.
 * Each counter has one writer. Who finds nothing to do sleeps; the other wakes it, under the lock,
 * once there are a few batches. */
struct ahead {
    struct timeorder *order;
    bool is_alone; /* there is no thread, and one batch is all that is used */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_size_t read;
    atomic_size_t written;
    atomic_bool reader_sleeps;
    atomic_bool writer_sleeps;
    atomic_bool has_ended;
    atomic_bool is_stopped;
    struct ahead_batch batches[BATCHES];
};

static size_t full(const struct ahead *ahead) {
    return atomic_load(&ahead->written) - atomic_load(&ahead->read);
}

static size_t empty(const struct ahead *ahead) {
    return BATCHES - 1 - full(ahead);
}

/* The other one is often about to do something: a short look costs less than sleep. */
static bool must_sleep(const struct ahead *ahead, size_t (*ready)(const struct ahead *)) {
    size_t count = ready(ahead);
    for (int i = 0; i < LOOKS && count == 0; i++) {
        count = ready(ahead);
    }
    return count == 0;
}

static void wake(struct ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/* ---- The thread that reads ahead ---- */

/* False: nobody wants a batch any more. */
static bool wait_for_empty(struct ahead *ahead) {
    if (must_sleep(ahead, empty) && !atomic_load(&ahead->is_stopped)) {
        pthread_mutex_lock(&ahead->lock);
        atomic_store(&ahead->writer_sleeps, true);
        while (empty(ahead) < FEW && !atomic_load(&ahead->is_stopped)) {
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        }
        atomic_store(&ahead->writer_sleeps, false);
        pthread_mutex_unlock(&ahead->lock);
    }
    return !atomic_load(&ahead->is_stopped);
}

static void hand_over(struct ahead *ahead) {
    atomic_fetch_add(&ahead->written, 1);
    if (atomic_load(&ahead->reader_sleeps) && full(ahead) >= FEW) {
        wake(ahead);
    }
}

static void *read_all(void *argument) {
    struct ahead *ahead = argument;
    while (wait_for_empty(ahead)) {
        struct ahead_batch *batch = &ahead->batches[atomic_load(&ahead->written) % BATCHES];
        batch->count = timeorder_read(ahead->order, batch->events, AHEAD_EVENTS);
        if (batch->count == 0) {
            break;
        }
        hand_over(ahead);
    }
    atomic_store(&ahead->has_ended, true);
    wake(ahead);
    return NULL;
}

/* ---- The one that replays ---- */

struct ahead *ahead_start(struct timeorder *order, bool is_alone) {
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return NULL;
    }
    ahead->order = order;
    ahead->is_alone = is_alone;
    if (is_alone) {
        return ahead;
    }
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (pthread_create(&ahead->thread, NULL, read_all, ahead) != 0) {
        free(ahead);
        return NULL;
    }
    return ahead;
}

static void wait_for_full(struct ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    atomic_store(&ahead->reader_sleeps, true);
    while (full(ahead) < FEW && !atomic_load(&ahead->has_ended)) {
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    atomic_store(&ahead->reader_sleeps, false);
    pthread_mutex_unlock(&ahead->lock);
}

static const struct ahead_batch *read_one(struct ahead *ahead) {
    struct ahead_batch *batch = &ahead->batches[0];
    batch->count = timeorder_read(ahead->order, batch->events, AHEAD_EVENTS);
    return batch->count != 0 ? batch : NULL;
}

const struct ahead_batch *ahead_next(struct ahead *ahead) {
    size_t next = atomic_load(&ahead->read);
    if (ahead->is_alone) {
        return read_one(ahead);
    }
    if (must_sleep(ahead, full) && !atomic_load(&ahead->has_ended)) {
        wait_for_full(ahead);
    }
    if (full(ahead) == 0) {
        return NULL;
    }
    atomic_store(&ahead->read, next + 1);
    if (atomic_load(&ahead->writer_sleeps) && empty(ahead) >= FEW) {
        wake(ahead);
    }
    return &ahead->batches[next % BATCHES];
}

void ahead_stop(struct ahead *ahead) {
    if (ahead == NULL || ahead->is_alone) {
        free(ahead);
        return;
    }
    atomic_store(&ahead->is_stopped, true);
    wake(ahead);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
