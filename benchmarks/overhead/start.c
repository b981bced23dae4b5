/* SPDX-License-Identifier: MIT */
/*
 * start.c: opens the libraries that its arguments name, allocates one block and ends: what large
 * libraries cost at the start of a program that hardly uses them. Run by benchmarks/run.
 */
#include "bench.h"

#include <dlfcn.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!dlopen(argv[i], RTLD_LAZY | RTLD_GLOBAL)) {
            fprintf(stderr, "start: %s\n", dlerror());
            return 1;
        }
    }
    void *block = malloc(64);
    BENCH_KEEP(block);
    free(block);
    bench_result("libraries", argc - 1);
    return 0;
}
