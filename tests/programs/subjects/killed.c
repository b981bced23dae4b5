/* SPDX-License-Identifier: MIT */
/*
 * killed.c: allocates in several threads, through many paths and with frees across threads, until
 * somebody kills it. Says one line when all threads run.
 */
#include "subject.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, SLOTS = 4096 };
static void *slots[SLOTS];
static pthread_barrier_t barrier;

NOINLINE static void *path(unsigned bits, int depth, size_t size) {
    void *block = NULL;
    if (depth == 0) {
        block = malloc(size);
    } else if (bits & 1) {
        block = path(bits >> 1, depth - 1, size);
    } else {
        block = path(bits >> 1, depth - 1, size + 1);
    }
    keep(block);
    return block;
}

static void *churn(void *argument) {
    unsigned seed = 12345u + (unsigned)(size_t)argument;
    pthread_barrier_wait(&barrier);
    for (;;) {
        seed = seed * 1664525u + 1013904223u;
        void *block = path(seed >> 8, (int)(seed >> 28), (seed >> 12) % 3000);
        free(__atomic_exchange_n(&slots[(seed >> 16) % SLOTS], block, __ATOMIC_ACQ_REL));
        if ((seed >> 20) % 64 == 0) {
            free(realloc(malloc(100), 5000));
        }
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&thread, NULL, churn, (void *)i);
    }
    pthread_barrier_wait(&barrier);
    say("running\n");
    pause();
    return 0;
}
