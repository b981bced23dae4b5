/* SPDX-License-Identifier: MIT */
/* builtother.c: see builtother.h. */
#include "builtother.h"

static char arena[1 << 20];
static size_t used;

/* There is one of the same name in built.cpp. */
static void *take_small(size_t size) {
    used += (size + 15) & ~(size_t)15;
    return arena + used - ((size + 15) & ~(size_t)15);
}

void *other_take(size_t size) {
    return take_small(size + 16);
}

/* Nothing but a jump, and told of no size. */
void *other_outer(size_t size) {
    return other_take(size);
}

void *other_static(size_t size) {
    return take_small(size);
}

void other_give(void *block) {
    *(volatile char *)block = 1;
}

void other_clear(void) {
    arena[0] = 0;
}

void *somewhere(size_t size) {
    return other_static(size);
}
