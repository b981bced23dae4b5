/* SPDX-License-Identifier: MIT */
/*
 * first.c: allocations each of which comes from a call path that was never seen before, made of
 * return addresses that were. Run by benchmarks/run, built bare and with frame pointers.
 *
 *   --levels N    levels of calls, each from one of two call sites (default 64, at most 64)
 *   --paths N     paths taken, no two alike (default 20,000)
 *
 * With as many levels as it takes bits to number the paths, every combination is taken: the frames
 * of a path are all walked, but most of its prefixes are known. With many more levels hardly one
 * is. The outermost level changes with every path. Results: nanoseconds of a path, of the same
 * calls without malloc and free ("walk_ns"), and its frames from main() to the one that allocates.
 */
#include "bench.h"

static volatile int allocating = 1;

/* Bit 0 of `path` chooses the call site of the outermost level. */
static BENCH_FRAME void descend(long levels, uint64_t path) {
    if (levels == 0) {
        if (allocating) {
            void *block = malloc(64);
            BENCH_KEEP(block);
            free(block);
        }
    } else if (path & 1) {
        descend(levels - 1, path >> 1);
        BENCH_CALL_SITE(1);
    } else {
        descend(levels - 1, path >> 1);
        BENCH_CALL_SITE(2);
    }
}

/* Another one for each number; where levels are few, all combinations before any comes again. */
static uint64_t path_of(long number) {
    return (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);
}

static BENCH_FRAME double paths_ns(long levels, long first, long paths) {
    uint64_t start = bench_now_ns();
    for (long i = 0; i < paths; i++) {
        descend(levels, path_of(first + i));
        BENCH_CALL_SITE(3);
    }
    return (double)(bench_now_ns() - start) / (double)paths;
}

int main(int argc, char **argv) {
    long levels = bench_option(argc, argv, "--levels", 64);
    long paths = bench_option(argc, argv, "--paths", 20000);
    if (levels < 1 || levels > 64 || paths < 1)
        return 2;
    paths_ns(levels, paths, 16); /* both return addresses of every level */
    BENCH_CALL_SITE(4);
    bench_result("path_ns", paths_ns(levels, 0, paths));
    allocating = 0;
    bench_result("walk_ns", paths_ns(levels, 0, paths));
    bench_result("frames", (double)levels + 3); /* and main, paths_ns, the outermost descend */
    return 0;
}
