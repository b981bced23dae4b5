/* SPDX-License-Identifier: MIT */
/*
 * bound.c: many threads, each allocating from every one of many contexts: the product that a table
 * of threads by contexts would have to hold. Run by benchmarks/run.
 *
 *   --threads N --contexts N (a power of ten)    default 1,000 and 100,000
 *
 * All threads are alive until the last one is done, so that none takes over another's counters.
 */
#include "bench.h"

#include <pthread.h>

static long contexts, levels;
static pthread_barrier_t finish;

static BENCH_FRAME void make_pair(void) {
    void *block = malloc(64);
    BENCH_KEEP(block);
    free(block);
}

static BENCH_FRAME void descend(long path, long left);

#define FROM_SITE(digit)                                                                           \
    case digit:                                                                                    \
        descend(path / 10, left - 1);                                                              \
        BENCH_CALL_SITE(digit);                                                                    \
        break

static BENCH_FRAME void descend(long path, long left) {
    if (left == 0) {
        make_pair();
        BENCH_CALL_SITE(10);
        return;
    }
    switch (path % 10) {
        FROM_SITE(0);
        FROM_SITE(1);
        FROM_SITE(2);
        FROM_SITE(3);
        FROM_SITE(4);
        FROM_SITE(5);
        FROM_SITE(6);
        FROM_SITE(7);
        FROM_SITE(8);
        FROM_SITE(9);
    }
}

static void *work(void *unused) {
    for (long i = 0; i < contexts; i++)
        descend(i, levels);
    pthread_barrier_wait(&finish);
    return unused;
}

int main(int argc, char **argv) {
    long threads = bench_option(argc, argv, "--threads", 1000);
    contexts = bench_option(argc, argv, "--contexts", 100000);
    for (long reach = 1; reach < contexts; reach *= 10)
        levels++;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&finish, NULL, (unsigned)threads + 1);
    uint64_t start = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, work, NULL) != 0) {
            perror("bound: pthread_create");
            return 1;
        }
        pthread_detach(thread);
    }
    pthread_barrier_wait(&finish);
    bench_result("pair_cpu_ns", (double)(bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) /
                                    (double)(threads * contexts));
    bench_result("peak_kib", (double)bench_status_kib("VmHWM:"));
    return 0;
}
