/* SPDX-License-Identifier: MIT */
/*
 * pool.c: an allocator of the program's own, as small as one can be, taken from and given back to
 * in a loop below ten frames. Run by benchmarks/run, alone and with its functions named (--alloc).
 *
 *   --batches N, --batch N  the median batch counts; so many pairs in each
 */
#include "bench.h"

struct object {
    struct object *next;
    char rest[56];
};

enum { OBJECTS = 64 };
static struct object objects[OBJECTS];
static struct object *list;

static BENCH_FRAME struct object *pool_take(size_t size) {
    struct object *first = list;
    __asm__ volatile("" : : "r"(size));
    list = first->next;
    return first;
}

static BENCH_FRAME void pool_give(struct object *object) {
    object->next = list;
    list = object;
}

static BENCH_FRAME double below(long depth, long batch) {
    uint64_t start;
    if (depth > 0) {
        double result = below(depth - 1, batch);
        BENCH_CALL_SITE(1);
        return result;
    }
    start = bench_now_ns();
    for (long i = 0; i < batch; i++) {
        struct object *object = pool_take(sizeof *object);
        BENCH_KEEP(object);
        pool_give(object);
    }
    return (double)(bench_now_ns() - start) / (double)batch;
}

int main(int argc, char **argv) {
    static double pair_ns[BENCH_MAX_BATCHES];
    long batches = bench_option(argc, argv, "--batches", 25);
    long batch = bench_option(argc, argv, "--batch", 20000);
    if (batches < 1 || batches > BENCH_MAX_BATCHES || batch < 1)
        return 2;
    for (int i = 0; i < OBJECTS; i++)
        pool_give(&objects[i]);
    for (long i = -1; i < batches; i++) {
        double found = below(10, batch);
        if (i >= 0) /* the first one warms up */
            pair_ns[i] = found;
    }
    bench_result("pair_ns", bench_median(pair_ns, (int)batches));
    return 0;
}
