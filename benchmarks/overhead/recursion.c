/* SPDX-License-Identifier: MIT */
/*
 * recursion.c: the worst case of instrumented calls: tiny functions that are not inlined, call
 * themselves and each other, and may allocate at the end of any path (they never do). Run by
 * benchmarks/run.
 *
 *   --levels N              levels of the tree of calls (default 16: 131,070 calls a batch)
 *   --batches N             the median batch counts
 */
#include "bench.h"

static volatile int allocating = 0;

static BENCH_FRAME long leaf(long value) {
    if (allocating) {
        void *block = malloc(16);
        BENCH_KEEP(block);
        free(block);
    }
    return value;
}

static BENCH_FRAME long odd(long levels);

static BENCH_FRAME long even(long levels) {
    if (levels == 0)
        return leaf(levels);
    return odd(levels - 1) + odd(levels - 1);
}

static BENCH_FRAME long odd(long levels) {
    if (levels == 0)
        return leaf(levels);
    return even(levels - 1) + even(levels - 1) + 1;
}

int main(int argc, char **argv) {
    static double call_ns[BENCH_MAX_BATCHES];
    long levels = bench_option(argc, argv, "--levels", 16);
    long batches = bench_option(argc, argv, "--batches", 101);
    if (batches < 1 || batches > BENCH_MAX_BATCHES || levels < 1 || levels > 40)
        return 2;
    free(malloc(64)); /* tools that wake up at the first allocation */
    long calls = (2L << levels) - 1 + (1L << levels); /* of even and odd, and of leaf */
    for (long i = -1; i < batches; i++) {
        uint64_t start = bench_now_ns();
        long sum = even(levels);
        double elapsed_ns = (double)(bench_now_ns() - start);
        __asm__ volatile("" : : "r"(sum));
        if (i >= 0) /* the first one warms up */
            call_ns[i] = elapsed_ns / (double)calls;
    }
    bench_result("call_ns", bench_median(call_ns, (int)batches));
    return 0;
}
