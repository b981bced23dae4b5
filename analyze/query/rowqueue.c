/* SPDX-License-Identifier: MIT */
/* rowqueue.c: rows that are pushed are pulled. See rowqueue.h. */
#include "analyze/query/rowqueue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 8, BATCH_ROWS = 512, LOOK_NS = 20000000 };

/* Batches [read, written) are full; the one before `read` is the cursor's, the one at `written` the
 * producer's, the others are empty. */
struct rowqueue {
    rowqueue_producer produce;
    void *argument;
    size_t row_size;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t read;
    size_t written;
    bool has_ended;
    atomic_bool is_closed;
    atomic_bool is_waited_for; /* for so long that a batch that is not full will do */
    int result;
    size_t filled; /* rows of the producer's batch */
    size_t taken;  /* rows of the cursor's batch that it has had */
    size_t counts[BATCHES];
    char *rows;
};

static char *row_at(const struct rowqueue *queue, size_t batch, size_t row) {
    return queue->rows + (batch % BATCHES * BATCH_ROWS + row) * queue->row_size;
}

/* ---- The producer ---- */

/* The batch is the cursor's to take; waits until there is an empty one. */
static void hand_over(struct rowqueue *queue, bool is_last) {
    pthread_mutex_lock(&queue->lock);
    queue->counts[queue->written % BATCHES] = queue->filled;
    queue->written += queue->filled != 0;
    queue->filled = 0;
    queue->has_ended = is_last;
    pthread_cond_broadcast(&queue->changed);
    while (!is_last && !atomic_load(&queue->is_closed) &&
           queue->written - queue->read >= BATCHES - 1) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
}

int rowqueue_put(struct rowqueue *queue, const void *row) {
    memcpy(row_at(queue, queue->written, queue->filled++), row, queue->row_size);
    if (queue->filled == BATCH_ROWS ||
        atomic_load_explicit(&queue->is_waited_for, memory_order_relaxed)) {
        hand_over(queue, false);
    }
    return atomic_load_explicit(&queue->is_closed, memory_order_relaxed);
}

const atomic_bool *rowqueue_cancel(const struct rowqueue *queue) {
    return &queue->is_closed;
}

static void *run(void *argument) {
    struct rowqueue *queue = argument;
    int result = queue->produce(queue, queue->argument);
    queue->result = result;
    hand_over(queue, true);
    return NULL;
}

/* ---- The cursor ---- */

struct rowqueue *rowqueue_start(size_t row_size, rowqueue_producer produce, void *argument) {
    struct rowqueue *queue = calloc(1, sizeof *queue);
    char *rows = malloc(row_size * BATCHES * BATCH_ROWS);
    if (queue == NULL || rows == NULL) {
        free(queue);
        free(rows);
        return NULL;
    }
    queue->produce = produce;
    queue->argument = argument;
    queue->row_size = row_size;
    queue->rows = rows;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (pthread_create(&queue->thread, NULL, run, queue) != 0) {
        free(rows);
        free(queue);
        return NULL;
    }
    return queue;
}

/* false: nothing changed meanwhile. */
static bool wait_a_little(struct rowqueue *queue) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(&queue->changed, &queue->lock, &until) == 0;
}

/* Gives the present batch back and takes the next full one. As rowqueue_next(). */
static int take_batch(struct rowqueue *queue, const atomic_bool *interrupted) {
    int result;
    pthread_mutex_lock(&queue->lock);
    while (queue->read == queue->written && !queue->has_ended && !atomic_load(interrupted)) {
        atomic_store(&queue->is_waited_for, !wait_a_little(queue));
    }
    atomic_store(&queue->is_waited_for, false);
    result = atomic_load(interrupted) ? -1 : queue->read != queue->written;
    if (result == 1) {
        queue->read++;
        queue->taken = 0;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

int rowqueue_next(struct rowqueue *queue, const atomic_bool *interrupted, const void **row) {
    if (queue->read == 0 || queue->taken == queue->counts[(queue->read - 1) % BATCHES]) {
        int result = take_batch(queue, interrupted);
        if (result != 1) {
            return result;
        }
    }
    *row = row_at(queue, queue->read - 1, queue->taken++);
    return 1;
}

int rowqueue_result(const struct rowqueue *queue) {
    return queue->result;
}

void rowqueue_close(struct rowqueue *queue) {
    if (queue == NULL) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->is_closed, true);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->rows);
    free(queue);
}
