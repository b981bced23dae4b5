/* SPDX-License-Identifier: MIT */
/*
 * mappings.c: what an mmap and its munmap cost while many other mappings are there. Run by
 * benchmarks/run.
 *
 *   --mappings N    that are there (default 60)
 *   --batch N --batches N    pairs in one timed batch, and batches; the median batch counts
 *
 * All are alike, so the kernel makes one area of them: what grows with their number is not its own.
 */
#include "bench.h"

#include <sys/mman.h>

enum { PAGE = 4096 };

static BENCH_FRAME void *map_page(void) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        perror("mappings: mmap");
        exit(1);
    }
    return page;
}

static BENCH_FRAME void pairs(long count) {
    for (long i = 0; i < count; i++)
        munmap(map_page(), PAGE);
}

int main(int argc, char **argv) {
    static double pair_ns[BENCH_MAX_BATCHES];
    long mappings = bench_option(argc, argv, "--mappings", 60);
    long batch = bench_option(argc, argv, "--batch", 1000);
    long batches = bench_option(argc, argv, "--batches", 25);
    if (batches < 1 || batches > BENCH_MAX_BATCHES || batch < 1)
        return 2;
    for (long i = 0; i < mappings; i++)
        map_page();
    pairs(batch);
    for (long i = 0; i < batches; i++) {
        uint64_t start = bench_now_ns();
        pairs(batch);
        pair_ns[i] = (double)(bench_now_ns() - start) / (double)batch;
    }
    bench_result("pair_ns", bench_median(pair_ns, (int)batches));
    return 0;
}
