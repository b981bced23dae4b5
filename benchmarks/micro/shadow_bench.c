/* SPDX-License-Identifier: MIT */
/*
 * shadow_bench.c: the shadow stack: what a push with its pop costs, without the calls of the hooks.
 */
#include "benchmarks/micro/micro.h"
#include "runtime/stack/shadow.h"

enum { OPERATIONS = 1000000, DEPTH = 100 };

static const uintptr_t stack_low = 0x7ff000000000, stack_high = 0x7ff000800000;

static void push_and_pop(void *argument) {
    struct shadow_stack *shadow = argument;
    for (int i = 0; i < OPERATIONS; i++) {
        uintptr_t slot = stack_high - 4096;
        shadow_push(shadow, slot);
        BENCH_KEEP(shadow);
        shadow_pop(shadow, slot);
        BENCH_KEEP(shadow);
    }
}

static void down_and_up(void *argument) {
    struct shadow_stack *shadow = argument;
    for (int i = 0; i < OPERATIONS / DEPTH; i++) {
        for (int depth = 1; depth <= DEPTH; depth++)
            shadow_push(shadow, stack_high - (uintptr_t)depth * 64);
        BENCH_KEEP(shadow);
        for (int depth = DEPTH; depth >= 1; depth--)
            shadow_pop(shadow, stack_high - (uintptr_t)depth * 64);
        BENCH_KEEP(shadow);
    }
}

int main(void) {
    static struct shadow_stack shadow;
    if (shadow_init(&shadow, stack_low, stack_high) != 0)
        return 1;
    micro_measure("shadow_stack: one frame, push and pop", OPERATIONS, push_and_pop, &shadow);
    micro_measure("shadow_stack: 100 frames down and up, a frame", OPERATIONS, down_and_up,
                  &shadow);
    shadow_free(&shadow);
    return 0;
}
