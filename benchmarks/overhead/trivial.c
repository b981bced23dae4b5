/* SPDX-License-Identifier: MIT */
/*
 * trivial.c: a program that does nothing, for the fixed cost of a tool: benchmarks/run times its
 * start and end from outside and reads its resident memory from here.
 */
#include "bench.h"

int main(void) {
    void *block = malloc(64);
    BENCH_KEEP(block);
    free(block);
    bench_result("peak_kib", (double)bench_status_kib("VmHWM:"));
    return 0;
}
