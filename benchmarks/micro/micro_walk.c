/* SPDX-License-Identifier: MIT */
/* micro_walk.c: see micro_walk.h. */
#include "benchmarks/micro/micro_walk.h"

struct walk_world micro_world;
struct walker micro_walker;

uintptr_t micro_open_walk(char **argv) {
    static struct space space;
    static struct modules modules;
    static struct rules rules;
    static struct context_tree tree;
    uintptr_t high = ((uintptr_t)__builtin_frame_address(0) | 0xfffff) + 1;
    high = high < (uintptr_t)argv ? high : (uintptr_t)argv;
    micro_open_space(&space);
    module_init(&modules, &space, argv[0] ? argv[0] : "");
    rule_init(&rules, &modules, &tree.areas);
    context_init(&tree, &space, UINT32_MAX);
    micro_world = (struct walk_world){.tree = &tree, .rules = &rules, .space = &space};
    if (walk_init(&micro_walker, high - (8 << 20), high) != 0) {
        fputs("micro: no memory\n", stderr);
        exit(1);
    }
    return high;
}

BENCH_FRAME uint32_t micro_take_context(void) {
    uintptr_t *frame = __builtin_frame_address(0);
    struct frame caller = {.pc = frame[1], .slot = (uintptr_t)&frame[1], .fp = frame[0]};
    return walk_context(&micro_world, &micro_walker, caller).value;
}
