/* SPDX-License-Identifier: MIT */
/* openmp.c: functions that the compiler cuts out of loops, run by the library's threads. */
#include "storm.h"

NOINLINE static long work(long i, long round) {
    char frame[64];
    keep(frame);
    if (i % 3 == 0) {
        allocate();
    }
    if (round % 100 == 0) {
        mark(73001 + 2 * (size_t)(i % 4));
    }
    keep(frame);
    return i;
}

static void storm_openmp(long rounds) {
    long sum = 0;
    for (long round = 0; round < rounds / 100; round++) {
#pragma omp parallel for num_threads(2) schedule(static) reduction(+ : sum)
        for (long i = 0; i < 16; i++) {
            sum += work(i, round);
            if (i == 11 && round % 50 == 0) {
                mark(73011);
            }
        }
#pragma omp parallel num_threads(2)
        {
            allocate();
#pragma omp master
            work(3, round);
        }
        if (round % 100 == 0) {
            mark(73013);
        }
    }
    keep(&sum);
}

int main(int argc, char **argv) {
    static const struct storm storms[] = {{"openmp", storm_openmp}};
    return storm_main(argc, argv, storms, 1);
}
