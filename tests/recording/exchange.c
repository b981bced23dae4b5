/* SPDX-License-Identifier: MIT */
/*
 * exchange.c ROUNDS: eight threads that hand each other blocks and free those of others, all from
 * one arena without thread caches, so that addresses are used again at once and by anybody. Each
 * thread writes its own index and the number of the allocation into the block, and notes of each
 * block that it frees what stands in it. Prints these notes: "freer index: owner.number ...", and
 * how often an allocation got an address that another thread's block had had.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS = 8,
    SLOTS = 64,
    SIZE = 40,
    MARK = 2
}; /* what the allocator leaves in free memory */

struct stamp {
    uint32_t owner;
    uint32_t number;
};

/* What a thread did, in static or mapped memory: noting must not allocate. */
static struct worker {
    struct stamp *freed;
    size_t freed_count;
    uint32_t allocated;
    uint32_t reused; /* addresses of others */
    int tid;
} workers[THREADS];

static struct stamp *slots[SLOTS];
static size_t rounds;
static pthread_barrier_t barrier;

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* A block whose bytes still tell who had the address before. */
__attribute__((noinline)) static struct stamp *allocate(struct worker *worker, uint32_t index) {
    struct stamp *block = malloc(SIZE);
    uint32_t before = *(volatile uint32_t *)&block[MARK].owner;
    worker->reused += before > 0 && before <= THREADS && before != index + 1;
    block[MARK] = (struct stamp){index + 1, ++worker->allocated};
    return block;
}

/* Ends the block and begins another, at the same address or not. */
__attribute__((noinline)) static struct stamp *resize(struct worker *worker, uint32_t index,
                                                      struct stamp *block, size_t size) {
    worker->freed[worker->freed_count++] = block[MARK];
    block = realloc(block, size);
    block[MARK] = (struct stamp){index + 1, ++worker->allocated};
    return block;
}

__attribute__((noinline)) static void release(struct worker *worker, struct stamp *block) {
    if (block != NULL) {
        worker->freed[worker->freed_count++] = block[MARK];
        free(block);
    }
}

static void *exchange(void *argument) {
    uint32_t index = (uint32_t)(uintptr_t)argument;
    struct worker *worker = &workers[index];
    unsigned seed = 77 + index;
    worker->tid = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < rounds; i++) {
        struct stamp *block = allocate(worker, index);
        block = __atomic_exchange_n(&slots[next_random(&seed) % SLOTS], block, __ATOMIC_ACQ_REL);
        release(worker, block);
        if (next_random(&seed) % 4 == 0) {
            block = allocate(worker, index);
            block = resize(worker, index, block, SIZE + next_random(&seed) % 3 * 40);
            release(worker, block);
        }
        if (i % 8 == 0) {
            sched_yield(); /* so that others' blocks lie in the slots, on few cores too */
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    uint64_t reused = 0;
    rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    mallopt(M_ARENA_MAX, 1);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].freed = mmap(NULL, 3 * rounds * sizeof(struct stamp) + 4096,
                                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, exchange, (void *)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        reused += workers[i].reused;
    }
    for (size_t i = 0; i < THREADS; i++) {
        printf("freer %d:", workers[i].tid);
        for (size_t k = 0; k < workers[i].freed_count; k++) {
            struct stamp stamp = workers[i].freed[k];
            printf(" %d.%u", workers[stamp.owner - 1].tid, stamp.number);
        }
        printf("\n");
    }
    printf("reused %llu\n", (unsigned long long)reused);
    return 0;
}
