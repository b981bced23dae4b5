/* SPDX-License-Identifier: MIT */
/*
 * kinds.cpp: what the other ways of getting a block and giving it back cost. Run by benchmarks/run.
 *
 *   --kind N     0: malloc and free; 1: calloc and free; 2: a realloc that stays where it is;
 *                3: operator new and delete; 4: malloc here and free by another thread
 *   --batch N --batches N    of these in one timed batch, and batches; the median batch counts
 *
 * With kind 4 a thread is made for each batch and frees all its blocks: long batches hide what it
 * costs to make. The time is that of the process then, for both threads.
 */
#include "bench.h"

#include <new>
#include <pthread.h>

enum { MALLOC, CALLOC, REALLOC, NEW, ELSEWHERE, BLOCK_SIZE = 64, LONGEST_BATCH = 100000 };

static void *blocks[LONGEST_BATCH];
static long batch;

static BENCH_FRAME void mallocs() {
    for (long i = 0; i < batch; i++) {
        void *block = malloc(BLOCK_SIZE);
        BENCH_KEEP(block);
        free(block);
    }
}

static BENCH_FRAME void callocs() {
    for (long i = 0; i < batch; i++) {
        void *block = calloc(1, BLOCK_SIZE);
        BENCH_KEEP(block);
        free(block);
    }
}

static BENCH_FRAME void reallocs() {
    void *block = malloc(BLOCK_SIZE);
    for (long i = 0; i < batch; i++) {
        block = realloc(block, (size_t)(BLOCK_SIZE + 8 * (i & 1)));
        BENCH_KEEP(block);
    }
    free(block);
}

static BENCH_FRAME void news() {
    for (long i = 0; i < batch; i++) {
        void *block = ::operator new(BLOCK_SIZE);
        BENCH_KEEP(block);
        ::operator delete(block);
    }
}

static void *free_all(void *unused) {
    for (long i = 0; i < batch; i++)
        free(blocks[i]);
    return unused;
}

static BENCH_FRAME void elsewhere() {
    pthread_t thread;
    for (long i = 0; i < batch; i++)
        blocks[i] = malloc(BLOCK_SIZE);
    if (pthread_create(&thread, nullptr, free_all, nullptr) != 0)
        exit(1);
    pthread_join(thread, nullptr);
}

static void (*const kinds[])() = {mallocs, callocs, reallocs, news, elsewhere};

int main(int argc, char **argv) {
    static double each_ns[BENCH_MAX_BATCHES];
    long kind = bench_option(argc, argv, "--kind", MALLOC);
    long batches = bench_option(argc, argv, "--batches", 25);
    batch = bench_option(argc, argv, "--batch", 20000);
    if (kind < MALLOC || kind > ELSEWHERE || batches < 1 || batches > BENCH_MAX_BATCHES ||
        batch < 1 || batch > LONGEST_BATCH) {
        fprintf(stderr, "kinds: no such kind, or too many batches\n");
        return 2;
    }
    for (long i = -1; i < batches; i++) {
        uint64_t start = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        kinds[kind]();
        if (i >= 0) /* the first one warms up */
            each_ns[i] = (double)(bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / (double)batch;
    }
    bench_result("pair_ns", bench_median(each_ns, (int)batches));
    return 0;
}
