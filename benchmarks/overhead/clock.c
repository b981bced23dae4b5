/* SPDX-License-Identifier: MIT */
/*
 * clock.c: the speed the core really runs at, in GHz: a chain of additions, each waiting for the
 * one before, takes one cycle each. Targets are stated for 2.5 GHz; benchmarks/run converts.
 */
#include "bench.h"

int main(void) {
    enum { LOOPS = 200000, CHAIN = 16, ROUNDS = 21 };
    static double ghz[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long value = 1;
        uint64_t start = bench_now_ns();
        for (int i = 0; i < LOOPS; i++) {
            for (int link = 0; link < CHAIN; link++) {
                value += 1;
                __asm__ volatile("" : "+r"(value));
            }
        }
        ghz[round] = (double)LOOPS * CHAIN / (double)(bench_now_ns() - start);
    }
    bench_result("ghz", bench_median(ghz, ROUNDS));
    return 0;
}
