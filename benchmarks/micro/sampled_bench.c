/* SPDX-License-Identifier: MIT */
/*
 * sampled_bench.c: what a free pays to learn that its block was not picked by sampling, in the ways
 * that there are: a byte for 256 bytes of addresses (heap/sampled_heap.h), one for a page, one by a
 * hash of the whole address, and the shadow heap itself. One block in 512 KiB was picked.
 *
 *   near   4,096 blocks of 64 bytes, one after the other
 *   far    1,048,576 of them in random order
 */
#include "micro.h"

#include "runtime/heap/sampled_heap.h"
#include "runtime/heap/shadow_heap.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 64, NEAR = 4096, FAR = 1 << 20, PICKED = (512 << 10) / BLOCK, ROUNDS = 1 << 23 };
enum { ITEMS = SAMPLED_FILTER_ITEMS };

static uint8_t table[ITEMS];
static struct shadow_heap heap;

static size_t by_granule(uintptr_t address) {
    return address >> SAMPLED_FILTER_SHIFT & (ITEMS - 1);
}

static size_t by_page(uintptr_t address) {
    return address >> 12 & (ITEMS - 1);
}

static size_t by_hash(uintptr_t address) {
    return address * MEMTRACE_SAMPLED_SPREAD >> 46;
}

#define RUN(name, found)                                                                           \
    static double name(const uintptr_t *blocks, size_t count) {                                    \
        uint64_t start = bench_now_ns();                                                           \
        size_t hits = 0;                                                                           \
        for (size_t i = 0; i < ROUNDS; i++) {                                                      \
            uintptr_t at = blocks[i & (count - 1)];                                                \
            if (__builtin_expect((found), 0)) {                                                    \
                hits++;                                                                            \
                __asm__ volatile("" ::"r"(hits));                                                  \
            }                                                                                      \
        }                                                                                          \
        return (double)(bench_now_ns() - start) / ROUNDS;                                          \
    }

RUN(run_nothing, at == 0)
RUN(run_granule, table[by_granule(at)] != 0)
RUN(run_page, table[by_page(at)] != 0)
RUN(run_hash, table[by_hash(at)] != 0)
RUN(run_shadow, *heap_fine(&heap, heap_leaf(&heap, at), at) != 0)

static void pick(const uintptr_t *blocks, size_t count, size_t (*place)(uintptr_t)) {
    __builtin_memset(table, 0, sizeof table);
    for (size_t i = 0; i < count; i += PICKED) {
        table[place(blocks[i])] = 1;
    }
}

static void measure(const char *name, uintptr_t *blocks, size_t count) {
    double nothing = run_nothing(blocks, count);
    pick(blocks, count, by_granule);
    printf("RESULT %s_granule_ns %.2f\n", name, run_granule(blocks, count) - nothing);
    pick(blocks, count, by_page);
    printf("RESULT %s_page_ns %.2f\n", name, run_page(blocks, count) - nothing);
    pick(blocks, count, by_hash);
    printf("RESULT %s_hash_ns %.2f\n", name, run_hash(blocks, count) - nothing);
    printf("RESULT %s_shadow_ns %.2f\n", name, run_shadow(blocks, count) - nothing);
}

int main(void) {
    char *memory = aligned_alloc(BLOCK, (size_t)FAR * BLOCK);
    uintptr_t *blocks = calloc(FAR, sizeof *blocks);
    uint64_t random = 1;
    if (memory == NULL || blocks == NULL || heap_init(&heap, MEMTRACE_FINE_SHIFT) != 0) {
        return 1;
    }
    for (size_t i = 0; i < FAR; i++) {
        struct heap_block block = {.start = (uintptr_t)memory + i * BLOCK, .size = BLOCK};
        blocks[i] = block.start;
        heap_insert(&heap, &block); /* its page is there, as if all had been counted once */
    }
    for (size_t i = 0; i < FAR; i++) {
        struct heap_block block;
        heap_remove(&heap, blocks[i], 0, &block);
    }
    measure("near", blocks, NEAR);
    for (size_t i = FAR - 1; i > 0; i--) {
        size_t other;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        other = (random >> 33) % (i + 1);
        uintptr_t swapped = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = swapped;
    }
    measure("far", blocks, FAR);
    return 0;
}
