/* SPDX-License-Identifier: MIT */
/*
 * wordpaths.c: paths that begin alike, slot by slot, and differ further out: each step comes from
 * one of two calls of the same function. Taken in a mixed order. A block's size names its path:
 * BASE, and below the highest bit of the rest, which tells how many steps there are, a bit a step.
 * Prints the two lines, and how often each path was taken.
 */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>

enum { BASE = 10000, MOST = 5, ALLOCATIONS = 6000 };

static unsigned line_of[2];

/* The frame that is two steps from the end allocates twice: its caller is known the second time. */
NOINLINE static void step(unsigned steps, unsigned path) {
    unsigned again = steps == 2 ? 2 : 1;
    if (steps == 0) {
        keep(malloc(BASE + path));
        return;
    }
    for (; again != 0; again--) {
        if ((path >> (steps - 1) & 1) == 0) {
            line_of[0] = __LINE__, step(steps - 1, path);
            __asm__ volatile("# 0"); /* the two calls stay apart */
        } else {
            line_of[1] = __LINE__, step(steps - 1, path);
            __asm__ volatile("# 1");
        }
    }
}

int main(void) {
    static unsigned taken[2 << MOST];
    unsigned chance = 1;
    for (int i = 0; i < ALLOCATIONS; i++) {
        unsigned steps;
        unsigned path;
        chance = chance * 1664525 + 1013904223;
        steps = 2 + (chance >> 29) % (MOST - 1);
        path = 1u << steps | (chance >> 20 & ((1u << steps) - 1));
        taken[path] += 2;
        step(steps, path);
    }
    printf("lines %u %u\n", line_of[0], line_of[1]);
    for (unsigned path = 0; path < 2 << MOST; path++) {
        if (taken[path] != 0) {
            printf("path %u %u\n", path, taken[path]);
        }
    }
    return 0;
}
