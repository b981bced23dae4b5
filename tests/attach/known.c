/* SPDX-License-Identifier: MIT */
/*
 * known.c MODE: says "ready", waits for a line, does what is known, says "done", waits for a line
 * again. The test attaches in between.
 *
 *   counts      keeps 10 blocks from before, frees them after, allocates 1,000 of 1,001 bytes
 *               afterwards and frees 400 of them
 *   threads N   N threads, which were there before, allocate 10,000 blocks of 2,003 bytes each
 *   rounds      the same again and again, a line each, and frees the 600 of the round before; "end"
 * at the end of its input busy N      N threads do nothing but allocate and free until the second
 * line
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE = 10, AFTER = 1000, FREED = 400, EACH = 10000, MOST = 64 };

static pthread_barrier_t barrier;
static volatile int stop;

static void wait_for_line(const char *say) {
    char line[16];
    puts(say);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        exit(4);
    }
}

__attribute__((noinline)) static void *take(size_t size) {
    char *block = malloc(size);
    *(volatile char *)block = 1;
    return block;
}

static void counts(void) {
    void *old[BEFORE];
    static void *blocks[AFTER];
    for (int i = 0; i < BEFORE; i++) {
        old[i] = take(5009);
    }
    wait_for_line("ready");
    for (int i = 0; i < AFTER; i++) {
        blocks[i] = take(1001);
    }
    for (int i = 0; i < FREED; i++) {
        free(blocks[i]);
    }
    for (int i = 0; i < BEFORE; i++) {
        free(old[i]);
    }
}

static void rounds(void) {
    static void *blocks[AFTER];
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int i = FREED; i < AFTER; i++) {
            free(blocks[i]);
        }
        for (int i = 0; i < AFTER; i++) {
            blocks[i] = take(1001);
        }
        for (int i = 0; i < FREED; i++) {
            free(blocks[i]);
        }
        puts("done");
        fflush(stdout);
    }
    puts("end");
}

static void *work(void *unused) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < EACH; i++) {
        free(take(2003));
    }
    return unused;
}

static void *keep_busy(void *unused) {
    while (!stop) {
        free(take(64));
    }
    return unused;
}

int main(int argc, char **argv) {
    int number = argc > 2 ? atoi(argv[2]) : 0;
    int is_busy = strcmp(argv[1], "busy") == 0;
    pthread_t threads[MOST];
    if (strcmp(argv[1], "rounds") == 0) {
        rounds();
        return 3;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)number + 1);
    for (int i = 0; i < number; i++) {
        pthread_create(&threads[i], NULL, is_busy ? keep_busy : work, NULL);
    }
    if (is_busy) {
        wait_for_line("ready");
    } else if (number != 0) {
        pthread_barrier_wait(&barrier);
        wait_for_line("ready");
        pthread_barrier_wait(&barrier);
    } else {
        counts();
    }
    for (int i = 0; i < number && !is_busy; i++) {
        pthread_join(threads[i], NULL);
    }
    wait_for_line("done");
    stop = 1;
    for (int i = 0; i < number && is_busy; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("end");
    return 3;
}
