/* SPDX-License-Identifier: MIT */
/*
 * walk_bench.c: from the registers at an allocation to its context, with the same stack each time,
 * and with some frames left and entered again; without the rest of an event.
 */
#include "benchmarks/micro/micro_walk.h"

enum { WALKS = 100000 };

static struct shadow_stack *shadow; /* NULL: nothing feeds it, as in a prebuilt program */

/* What hooks do where a function begins and ends. */
#define ENTER()                                                                                    \
    do {                                                                                           \
        if (shadow)                                                                                \
            shadow_push(shadow, (uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t));        \
    } while (0)
#define LEAVE()                                                                                    \
    do {                                                                                           \
        if (shadow)                                                                                \
            shadow_pop(shadow, (uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t));         \
    } while (0)

static BENCH_FRAME void walk_here(void *unused) {
    (void)unused;
    ENTER();
    for (int i = 0; i < WALKS; i++)
        BENCH_KEEP((uintptr_t)micro_take_context());
    LEAVE();
}

static BENCH_FRAME void enter(long frames) {
    ENTER();
    if (frames <= 1) {
        BENCH_KEEP((uintptr_t)micro_take_context());
    } else {
        enter(frames - 1);
        BENCH_CALL_SITE(1);
    }
    LEAVE();
}

static BENCH_FRAME void walk_after_change(void *argument) {
    ENTER();
    for (int i = 0; i < WALKS; i++) {
        enter(*(long *)argument);
        BENCH_CALL_SITE(2);
    }
    LEAVE();
}

static BENCH_FRAME void measure(long depth) {
    char name[80];
    long change = 4;
    const char *how = shadow ? "shadow stack" : "frame pointers";
    snprintf(name, sizeof name, "walk, %s: %ld frames, same stack", how, depth);
    micro_measure(name, WALKS, walk_here, NULL);
    snprintf(name, sizeof name, "walk, %s: %ld frames, %ld entered again", how, depth, change);
    micro_measure(name, WALKS, walk_after_change, &change);
}

static BENCH_FRAME void descend(long left, long depth) {
    ENTER();
    if (left <= 0)
        measure(depth);
    else
        descend(left - 1, depth);
    BENCH_CALL_SITE(3);
    LEAVE();
}

int main(int argc, char **argv) {
    (void)argc;
    uintptr_t high = micro_open_walk(argv);
    for (int fed = 0; fed < 2; fed++) {
        for (long depth = 10; depth <= 1000; depth *= 10)
            descend(depth - 6, depth);
        if (shadow_init(&micro_walker.shadow, high - (8 << 20), high) != 0)
            return 1;
        shadow = &micro_walker.shadow;
    }
    return 0;
}
