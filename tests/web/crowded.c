/* SPDX-License-Identifier: MIT */
/* crowded.c: two threads that hold many blocks for long, on many call paths, and free each other's;
 * and maps. Arguments: how many blocks each allocates, on 2^how many call paths. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HELD = 1 << 15, MAPS_EACH = 20000 };

static _Atomic(void *) held[HELD];
static long count = 100000;
static int deepest = 8;

static _Thread_local unsigned long state;

static unsigned long next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

__attribute__((noinline)) static void hold(void) {
    void *block = malloc(16 + next_random() % 1000);
    void *before = atomic_exchange(&held[next_random() % HELD], block);
    if (next_random() % 16 != 0) {
        free(before);
    }
}

static void two(int depth);
__attribute__((noinline)) static void one(int depth) {
    if (depth == 0) {
        hold();
    } else if (next_random() % 2) {
        one(depth - 1);
    } else {
        two(depth - 1);
    }
    __asm__ volatile("");
}

__attribute__((noinline)) static void two(int depth) {
    if (depth == 0) {
        hold();
    } else if (next_random() % 2) {
        one(depth - 1);
    } else {
        two(depth - 1);
    }
    __asm__ volatile("" ::: "memory");
}

static void *work(void *argument) {
    state = (unsigned long)argument;
    for (long i = 0; i < count; i++) {
        one(deepest);
        if (i % MAPS_EACH == 0) {
            void *mapped = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(mapped, i % (2 * MAPS_EACH) == 0 ? 65536 : 4096);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t other;
    count = argc > 1 ? atol(argv[1]) : count;
    deepest = argc > 2 ? atoi(argv[2]) : deepest;
    pthread_create(&other, NULL, work, (void *)1);
    work((void *)2);
    pthread_join(other, NULL);
    return 0;
}
