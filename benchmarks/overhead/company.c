/* SPDX-License-Identifier: MIT */
/*
 * company.c: what a thread costs: to make one that allocates, and to have many. Run by
 * benchmarks/run.
 *
 *   --threads N  that are alive at once (default 500)
 *   --blocks N   that each has (default 20)
 *   --made N     threads made and waited for one after the other (default 2,000)
 *
 * Results: microseconds by the clock from the making of a thread to its end, and KiB that are
 * resident for each of those that are alive, its stack included.
 */
#include "bench.h"

#include <pthread.h>

enum { BLOCK_SIZE = 64, MAX_BLOCKS = 1000, STACK_BYTES = 64 * 1024 };

static pthread_attr_t attributes;
static pthread_barrier_t line;
static long blocks;

static BENCH_FRAME void have_blocks(long count) {
    void *block[MAX_BLOCKS];
    for (long i = 0; i < count; i++)
        block[i] = malloc(BLOCK_SIZE);
    BENCH_KEEP(block);
    if (count > 1) { /* one of many: all shall have theirs before anybody goes */
        pthread_barrier_wait(&line);
        pthread_barrier_wait(&line);
    }
    for (long i = 0; i < count; i++)
        free(block[i]);
}

static void *work(void *count) {
    have_blocks(*(long *)count);
    return NULL;
}

static pthread_t make(long *count) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, work, count) != 0) {
        perror("company: pthread_create");
        exit(1);
    }
    return thread;
}

static double make_us(long made) {
    static long one = 1;
    pthread_join(make(&one), NULL);
    uint64_t start = bench_wall_ns();
    for (long i = 0; i < made; i++)
        pthread_join(make(&one), NULL);
    return (double)(bench_wall_ns() - start) / 1000 / (double)made;
}

static double thread_kib(long threads) {
    pthread_barrier_init(&line, NULL, (unsigned)threads + 1);
    long before = bench_status_kib("VmRSS:");
    for (long i = 0; i < threads; i++)
        pthread_detach(make(&blocks));
    pthread_barrier_wait(&line);
    long all = bench_status_kib("VmRSS:") - before;
    pthread_barrier_wait(&line);
    return (double)all / (double)threads;
}

int main(int argc, char **argv) {
    long threads = bench_option(argc, argv, "--threads", 500);
    blocks = bench_option(argc, argv, "--blocks", 20);
    if (threads < 1 || blocks < 2 || blocks > MAX_BLOCKS) {
        fprintf(stderr, "company: --threads must be 1 at least, --blocks 2 to %d\n", MAX_BLOCKS);
        return 2;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bench_result("make_us", make_us(bench_option(argc, argv, "--made", 2000)));
    bench_result("thread_kib", thread_kib(threads));
    return 0;
}
