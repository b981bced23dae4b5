/* SPDX-License-Identifier: MIT */
/*
 * pair.c: a worker thread allocates 10 blocks of 1000 bytes for each line of stdin, of which main
 * frees 4; main allocates one of 5000 bytes. It prints "ready" after each step.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 10, TAKEN = 4, SMALL = 1000, LARGE = 5000 };

static void *volatile made[BLOCKS];
static void *volatile own;
static sem_t wanted;
static sem_t done;

__attribute__((noinline)) static void produce(void) {
    for (volatile int i = 0; i < BLOCKS; i++) {
        made[i] = malloc(SMALL);
    }
}

static void *work(void *unused) {
    for (;;) {
        sem_wait(&wanted);
        produce();
        sem_post(&done);
    }
    return unused;
}

__attribute__((noinline)) static void consume(void) {
    own = malloc(LARGE);
    for (volatile int i = 0; i < TAKEN; i++) {
        free(made[i]);
    }
}

int main(void) {
    char line[16];
    pthread_t thread;
    sem_init(&wanted, 0, 0);
    sem_init(&done, 0, 0);
    if (pthread_create(&thread, NULL, work, NULL) != 0) {
        return 1;
    }
    pthread_setname_np(thread, "worker");
    do {
        sem_post(&wanted);
        sem_wait(&done);
        consume();
        if (write(STDOUT_FILENO, "ready\n", strlen("ready\n")) < 0) {
            return 1;
        }
    } while (read(STDIN_FILENO, line, sizeof line) > 0);
    return 0;
}
