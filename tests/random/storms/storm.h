/* SPDX-License-Identifier: MIT */
/*
 * storm.h: what the storms share. A storm leaves frames in every way there is, very often, with
 * contexts known to the runtime in many of them; the marked allocations then show whether anything
 * was believed that is no longer true. `STORM NAME ROUNDS` runs one.
 */
#ifndef STORM_H
#define STORM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

/* The compiler no longer knows what is there. */
static inline void keep(const void *place) {
    __asm__ volatile("" : : "r"(place) : "memory");
}

static inline long opaque(long value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* An allocation whose stack is compared: storms.py knows it by its size, 70,000 and more. */
NOINLINE static void mark(size_t size) {
    void *block = malloc(size);
    keep(block);
    free(block);
}

/* Any other allocation: the runtime now knows every frame that is active. */
NOINLINE static void allocate(void) {
    void *block = malloc(24);
    keep(block);
    free(block);
}

struct storm {
    const char *name;
    void (*run)(long rounds);
};

static inline int storm_main(int argc, char **argv, const struct storm *storms, size_t count) {
    for (size_t i = 0; argc > 2 && i < count; i++) {
        if (strcmp(storms[i].name, argv[1]) == 0) {
            storms[i].run(atol(argv[2]));
            mark(199999);
            puts("done");
            return 3;
        }
    }
    return 98;
}

#endif
