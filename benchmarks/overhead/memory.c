/* SPDX-License-Identifier: MIT */
/*
 * memory.c: peak resident memory with many live blocks from many contexts. Run by benchmarks/run.
 *
 *   --blocks N --size N    live blocks, written all over (default 2.5 million of 32 bytes)
 *   --contexts N           call paths they come from, in turn (default 100,000, a power of ten)
 *
 * A path is chosen by the decimal digits of its number: each level calls the next from one of ten
 * call sites. The peak counts shared mappings too (VmHWM), so a tool that keeps its data in one
 * does not get it for nothing.
 */
#include "bench.h"

static size_t block_size;

/* Kept linked, so that leak checkers and the compiler see a use. */
static void *last_block;

static BENCH_FRAME void make_block(void) {
    char *block = malloc(block_size);
    if (!block) {
        fputs("memory: out of memory\n", stderr);
        exit(1);
    }
    memset(block, 1, block_size);
    memcpy(block, &last_block, sizeof last_block);
    last_block = block;
}

static BENCH_FRAME void descend(long path, long levels);

#define FROM_SITE(digit)                                                                           \
    case digit:                                                                                    \
        descend(path / 10, levels - 1);                                                            \
        BENCH_CALL_SITE(digit);                                                                    \
        break

static BENCH_FRAME void descend(long path, long levels) {
    if (levels == 0) {
        make_block();
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

int main(int argc, char **argv) {
    long blocks = bench_option(argc, argv, "--blocks", 2500000);
    long contexts = bench_option(argc, argv, "--contexts", 100000);
    block_size = (size_t)bench_option(argc, argv, "--size", 32);
    long levels = 0;
    for (long reach = 1; reach < contexts; reach *= 10)
        levels++;
    if (block_size < sizeof(void *) || contexts < 1) {
        fputs("memory: --size must be 8 at least, --contexts 1 at least\n", stderr);
        return 2;
    }
    uint64_t start = bench_now_ns();
    for (long i = 0; i < blocks; i++)
        descend(i % contexts, levels);
    bench_result("block_ns", (double)(bench_now_ns() - start) / (double)blocks);
    bench_result("peak_kib", (double)bench_status_kib("VmHWM:"));
    return 0;
}
