/* SPDX-License-Identifier: MIT */
/*
 * exchange_all.c: THREADS threads, all alive together, of which each frees one block of each one.
 *
 * Called by tests/recording/crowd.py.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long count;
static void **blocks; /* by owner and freer */
static pthread_barrier_t made;

static void *work(void *argument) {
    long self = (long)argument;
    for (long i = 0; i < count; i++) {
        blocks[self * count + i] = malloc(16);
    }
    pthread_barrier_wait(&made);
    for (long i = 0; i < count; i++) {
        /* no two begin with the same owner */
        free(blocks[(self + i) % count * count + self]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_t *threads;
    count = argc > 1 ? atol(argv[1]) : 1000;
    threads = calloc((size_t)count, sizeof *threads);
    blocks = calloc((size_t)(count * count), sizeof *blocks);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&made, NULL, (unsigned)count);
    for (long i = 0; i < count; i++) {
        if (pthread_create(&threads[i], &attributes, work, (void *)i) != 0) {
            perror("pthread_create");
            _Exit(2); /* the others wait for ever */
        }
    }
    for (long i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    free(blocks);
    return 0;
}
