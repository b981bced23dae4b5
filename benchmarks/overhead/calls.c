/* SPDX-License-Identifier: MIT */
/*
 * calls.c: what instrumentation itself costs: calls of a function that does nothing, with no
 * allocation near. Run by benchmarks/run.
 *
 *   --batch N --batches N    calls in one timed batch, and batches; the median batch counts
 */
#include "bench.h"

static BENCH_FRAME void nothing(void) {
    BENCH_CALL_SITE(1);
}

static BENCH_FRAME void one_batch(long calls) {
    for (long i = 0; i < calls; i++)
        nothing();
}

int main(int argc, char **argv) {
    static double call_ns[BENCH_MAX_BATCHES];
    long batch = bench_option(argc, argv, "--batch", 100000);
    long batches = bench_option(argc, argv, "--batches", 25);
    if (batches < 1 || batches > BENCH_MAX_BATCHES || batch < 1)
        return 2;
    free(malloc(64)); /* tools that wake up at the first allocation */
    one_batch(batch);
    for (long i = 0; i < batches; i++) {
        uint64_t start = bench_now_ns();
        one_batch(batch);
        call_ns[i] = (double)(bench_now_ns() - start) / (double)batch;
    }
    bench_result("call_ns", bench_median(call_ns, (int)batches));
    return 0;
}
