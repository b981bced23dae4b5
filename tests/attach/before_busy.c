/* SPDX-License-Identifier: MIT */
/*
 * before_busy.c THREADS: each thread has blocks, and after a line frees those of its neighbour, one
 * after the other, with short-lived new blocks in between; slowly until the next line. Says "ready"
 * before that, and "done" when all are gone; goes on with short-lived blocks until the end of its
 * input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EACH = 20000, MOST = 8 };

static char *blocks[MOST][EACH];
static int threads;
static pthread_barrier_t barrier;
static volatile int is_fast, is_over;

static void work(void) {
    const struct timespec moment = {0, 50000};
    free(malloc(40));
    nanosleep(&moment, NULL);
}

static void *live(void *of) {
    int number = (int)((char *(*)[EACH])of - blocks);
    char **others = blocks[(number + 1) % threads];
    for (int i = 0; i < EACH; i++) {
        blocks[number][i] = malloc((size_t)(1 + i * 7 % 3000));
    }
    pthread_barrier_wait(&barrier); /* all have theirs */
    pthread_barrier_wait(&barrier); /* there was a line */
    for (int i = 0; i < EACH; i++) {
        free(others[i]);
        if (!is_fast) {
            work();
        }
    }
    pthread_barrier_wait(&barrier); /* all are gone */
    while (!is_over) {
        work();
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread[MOST];
    char line[16];
    threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > MOST) {
        return 2;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_create(&thread[i], NULL, live, blocks[i]);
    }
    pthread_barrier_wait(&barrier);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    puts("ready");
    if (fgets(line, sizeof line, stdin) == NULL) {
        return 2;
    }
    pthread_barrier_wait(&barrier);
    if (fgets(line, sizeof line, stdin) == NULL) {
        return 2;
    }
    is_fast = 1;
    pthread_barrier_wait(&barrier);
    puts("done");
    while (fgets(line, sizeof line, stdin) != NULL) {
    }
    is_over = 1;
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return 3;
}
