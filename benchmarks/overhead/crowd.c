/* SPDX-License-Identifier: MIT */
/*
 * crowd.c: many threads that are all alive at once and allocate. Run by benchmarks/run.
 *
 *   --threads N  threads (default 1,000)
 *   --pairs N    mallocs and frees of each (default 2,000)
 *   --places N   blocks of any size go to one of so many places, and what lay there is freed by who
 *                comes upon it (default 0: each frees its own at once)
 *
 * Result: wall time for each pair, over all threads.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 4000, MAX_PLACES = 65536, STACK_BYTES = 64 * 1024, BLOCK_SIZE = 64 };

static pthread_barrier_t line;
static long pairs, places;
static _Atomic(void *) place[MAX_PLACES];

static BENCH_FRAME void keep_own(void) {
    for (long i = 0; i < pairs; i++) {
        void *block = malloc(BLOCK_SIZE);
        BENCH_KEEP(block);
        free(block);
    }
}

static BENCH_FRAME void exchange(uint32_t random) {
    for (long i = 0; i < pairs; i++) {
        random = random * 1664525u + 1013904223u;
        free(atomic_exchange(&place[(random >> 12) % (unsigned long)places],
                             malloc((random >> 8) % 512)));
    }
}

static void *work(void *argument) {
    free(malloc(1)); /* known from here on */
    pthread_barrier_wait(&line);
    if (places != 0)
        exchange((uint32_t)(uintptr_t)argument);
    else
        keep_own();
    pthread_barrier_wait(&line); /* nobody goes before all are done */
    return NULL;
}

int main(int argc, char **argv) {
    static pthread_t thread[MAX_THREADS];
    long threads = bench_option(argc, argv, "--threads", 1000);
    pthread_attr_t attributes;
    uint64_t start;
    pairs = bench_option(argc, argv, "--pairs", 2000);
    places = bench_option(argc, argv, "--places", 0);
    if (threads < 1 || threads > MAX_THREADS || places > MAX_PLACES) {
        fprintf(stderr, "crowd: --threads must be 1 to %d, --places at most %d\n", MAX_THREADS,
                MAX_PLACES);
        return 2;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&line, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], &attributes, work, (void *)(uintptr_t)(i + 1)) != 0) {
            perror("crowd: pthread_create");
            return 1;
        }
    }
    start = bench_wall_ns();
    pthread_barrier_wait(&line);
    pthread_barrier_wait(&line);
    bench_result("pair_wall_ns",
                 (double)(bench_wall_ns() - start) / ((double)threads * (double)pairs));
    for (long i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}
