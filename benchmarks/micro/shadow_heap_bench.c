/* SPDX-License-Identifier: MIT */
/*
 * shadow_heap_bench.c: the shadow heap: noting a block and taking it out again, where the record is
 * in the cache and where it is not.
 */
#include "benchmarks/micro/micro.h"
#include "runtime/heap/shadow_heap.h"

enum { OPERATIONS = 1000000 };

/* Addresses are only numbers here: nothing behind them is touched. */
static const uintptr_t heap_start = 0x7f0000000000;

struct plan {
    struct shadow_heap heap;
    uint64_t size;   /* of a block */
    uintptr_t reach; /* blocks lie in [heap_start, heap_start + reach) */
    int random;
};

static void insert_and_remove(void *argument) {
    struct plan *plan = argument;
    uint64_t random = 88172645463325252u;
    uintptr_t place = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        struct heap_block block = {.size = plan->size, .context = 7, .thread = 1, .birth_tick = 9};
        struct heap_block taken;
        place = plan->random ? micro_random(&random) : place + plan->size;
        block.start = heap_start + (place % plan->reach & ~(uintptr_t)31);
        if (heap_insert(&plan->heap, &block) != 0 ||
            !heap_remove(&plan->heap, block.start, 0, &taken) || taken.context != 7)
            abort();
    }
}

int main(void) {
    static struct plan plan;
    if (heap_init(&plan.heap, MEMTRACE_FINE_SHIFT) != 0)
        return 1;
    plan = (struct plan){.heap = plan.heap, .size = 32, .reach = 1 << 12};
    micro_measure("shadow_heap: 32-byte blocks, 4 KiB of heap", OPERATIONS, insert_and_remove,
                  &plan);
    plan.reach = 256 << 20;
    micro_measure("shadow_heap: 32-byte blocks in order, 256 MiB of heap", OPERATIONS,
                  insert_and_remove, &plan);
    plan.random = 1;
    micro_measure("shadow_heap: 32-byte blocks at random, 256 MiB of heap", OPERATIONS,
                  insert_and_remove, &plan);
    plan.size = 4096;
    micro_measure("shadow_heap: 4 KiB blocks at random, 256 MiB of heap", OPERATIONS,
                  insert_and_remove, &plan);
    return 0;
}
