/* SPDX-License-Identifier: MIT */
/* ahead.c: reads a recording ahead of its replay. See ahead.h. */
#include "analyze/model/ahead.h"

#include <pthread.h>
#include <stdlib.h>

enum { BATCHES = 8 };

/* Batches [read, written) are full; the one before `read` is the replay's, the others are empty. */
struct ahead {
    struct timeorder *order;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t read;
    size_t written;
    bool has_ended;
    bool is_stopped;
    struct ahead_batch batches[BATCHES];
};

/* Waits for an empty batch. NULL: nobody wants one any more. */
static struct ahead_batch *wait_for_empty(struct ahead *ahead) {
    struct ahead_batch *batch = NULL;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->is_stopped && ahead->written - ahead->read >= BATCHES - 1) {
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    if (!ahead->is_stopped) {
        batch = &ahead->batches[ahead->written % BATCHES];
    }
    pthread_mutex_unlock(&ahead->lock);
    return batch;
}

static void hand_over(struct ahead *ahead, bool is_last) {
    pthread_mutex_lock(&ahead->lock);
    ahead->written += !is_last;
    ahead->has_ended = is_last;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

static void *read_all(void *argument) {
    struct ahead *ahead = argument;
    struct ahead_batch *batch;
    while ((batch = wait_for_empty(ahead)) != NULL) {
        batch->count = timeorder_read(ahead->order, batch->events, AHEAD_EVENTS);
        hand_over(ahead, batch->count == 0);
        if (batch->count == 0) {
            break;
        }
    }
    return NULL;
}

struct ahead *ahead_start(struct timeorder *order) {
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return NULL;
    }
    ahead->order = order;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    if (pthread_create(&ahead->thread, NULL, read_all, ahead) != 0) {
        free(ahead);
        return NULL;
    }
    return ahead;
}

const struct ahead_batch *ahead_next(struct ahead *ahead) {
    const struct ahead_batch *batch = NULL;
    pthread_mutex_lock(&ahead->lock);
    while (ahead->read == ahead->written && !ahead->has_ended) {
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    if (ahead->read != ahead->written) {
        batch = &ahead->batches[ahead->read++ % BATCHES];
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return batch;
}

void ahead_stop(struct ahead *ahead) {
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&ahead->lock);
    ahead->is_stopped = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
