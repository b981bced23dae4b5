/* SPDX-License-Identifier: MIT */
/*
 * context_bench.c: the context tree: making contexts, finding them again in the tree and in the
 * cache a thread has in front of it.
 */
#include "benchmarks/micro/micro.h"
#include "runtime/stack/context.h"

enum { CONTEXTS = 1000000, CHAIN = 100, HITS = 1000000 };

static struct context_tree tree;
static struct context_cache cache;

/* Every node has four children; every second one is charged. */
static void make_or_find(void *unused) {
    (void)unused;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        /* Ids skip the places under each leaf's header; parents only need to exist. */
        struct context_id parent = {i < 64 ? 0 : i / 4 | MEMTRACE_FIRST_CONTEXT};
        context_child(&tree, parent, 0x1000 + (uint64_t)i, (enum context_kind)(i & 1));
    }
}

static void find_at_random(void *unused) {
    uint64_t random = 88172645463325252u;
    (void)unused;
    for (uint32_t n = 0; n < CONTEXTS; n++) {
        uint32_t i = (uint32_t)(micro_random(&random) % CONTEXTS);
        struct context_id parent = {i < 64 ? 0 : i / 4 | MEMTRACE_FIRST_CONTEXT};
        context_child(&tree, parent, 0x1000 + (uint64_t)i, (enum context_kind)(i & 1));
    }
}

/* One path from the root downwards, over and over: what a walk that lost its place does. */
static void cached_chain(void *unused) {
    (void)unused;
    for (int n = 0; n < HITS / CHAIN; n++) {
        struct context_id at = {0};
        for (uint64_t frame = 0; frame < CHAIN; frame++)
            at =
                context_cached_child(&tree, &cache, at, 0x555500001000 + frame * 64, CONTEXT_INNER);
        BENCH_KEEP((uintptr_t)at.value);
    }
}

static void cached_one(void *unused) {
    (void)unused;
    for (int n = 0; n < HITS; n++) {
        struct context_id at = context_cached_child(&tree, &cache, (struct context_id){0},
                                                    0x555500001000, CONTEXT_INNER);
        BENCH_KEEP((uintptr_t)at.value);
    }
}

int main(void) {
    static struct space space;
    micro_open_space(&space);
    context_init(&tree, &space, UINT32_MAX);
    micro_measure_once("context_child: making a million contexts", CONTEXTS, make_or_find, NULL);
    micro_measure_once("context_child: finding them in the same order", CONTEXTS, make_or_find,
                       NULL);
    micro_measure_once("context_child: finding them in any order", CONTEXTS, find_at_random, NULL);
    micro_measure("context_cached_child: 100 frames in a chain, a frame", HITS, cached_chain, NULL);
    micro_measure("context_cached_child: one frame", HITS, cached_one, NULL);
    printf("%-58s %8.2f bytes\n", "region for each context",
           (double)space.header->end / (double)space.header->context_count);
    return 0;
}
