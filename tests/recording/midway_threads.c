/* SPDX-License-Identifier: MIT */
/*
 * midway_threads.c: threads that allocate, hand over, resize and free without a pause, and others
 * that come and go. "p" on its standard input makes all pause, and is answered with how many blocks
 * there are and how many bytes these have; "g" makes them go on.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORKERS = 6, SLOTS = 2048 };

struct block {
    size_t size;
};

static _Atomic(struct block *) slots[SLOTS];
static atomic_int goes = 1, is_over, paused;
static atomic_long count, bytes;

static struct block *with_size(struct block *block, size_t size) {
    block->size = size;
    return block;
}

static __attribute__((noinline)) struct block *get(size_t size) {
    return with_size(malloc(size), size);
}

static __attribute__((noinline)) struct block *resize(struct block *block, size_t size) {
    return with_size(realloc(block, size), size);
}

static void note(long blocks, long size) {
    count += blocks;
    bytes += size;
}

static void drop(struct block *block) {
    note(-1, -(long)block->size);
    free(block);
}

static struct block *make(unsigned chance) {
    size_t size = (chance & 7) == 2 ? 1024 + (chance >> 6) % 100000 : 8 + (chance >> 7) % 900;
    note(1, (long)size);
    return get(size);
}

static struct block *change(struct block *block, unsigned chance) {
    size_t size = 8 + (chance >> 5) % 3000;
    note(0, (long)size - (long)block->size);
    return resize(block, size);
}

static void wait_here(void) {
    paused++;
    while (!goes && !is_over) {
        usleep(1000);
    }
    paused--;
}

static void turn(unsigned chance) {
    _Atomic(struct block *) *slot = &slots[(chance >> 8) % SLOTS];
    struct block *block = atomic_exchange(slot, NULL);
    struct block *none = NULL;
    if (block != NULL && (chance >> 20 & 7) == 1) {
        block = change(block, chance);
    } else {
        if (block != NULL) {
            drop(block);
        }
        block = make(chance);
    }
    if (!atomic_compare_exchange_strong(slot, &none, block)) {
        drop(block);
    }
}

static void *work(void *seed) {
    unsigned chance = (unsigned)(long)seed * 7919 + 1;
    while (!is_over) {
        if (!goes) {
            wait_here();
        }
        chance = chance * 1103515245 + 12345;
        turn(chance);
    }
    return NULL;
}

static void *live_shortly(void *unused) {
    struct block *own[50];
    for (int i = 0; i < 50; i++) {
        own[i] = get(100 + (size_t)i);
    }
    for (int i = 0; i < 50; i++) {
        free(own[i]);
    }
    return unused;
}

static void *make_threads(void *unused) {
    while (!is_over) {
        pthread_t thread;
        if (!goes) {
            wait_here();
        }
        if (pthread_create(&thread, NULL, live_shortly, NULL) == 0) {
            pthread_join(thread, NULL);
        }
        usleep(200);
    }
    return unused;
}

int main(void) {
    static char line[64], in[4096], out[4096];
    pthread_t threads[WORKERS + 1];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOLBF, sizeof out);
    for (long i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    pthread_create(&threads[WORKERS], NULL, make_threads, NULL);
    while (fgets(line, sizeof line, stdin) != NULL) {
        goes = line[0] == 'g';
        while (!goes && paused != WORKERS + 1) {
            usleep(1000);
        }
        printf("%ld %ld\n", (long)count, (long)bytes);
    }
    is_over = 1;
    for (int i = 0; i <= WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
