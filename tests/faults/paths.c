/* SPDX-License-Identifier: MIT */
/*
 * paths.c: allocates along 4096 call paths, each several times, in two threads. Which functions a
 * path leads through tells the size of what is allocated at its end: one of four a level, the
 * digits of a number of base four. Ends with 3.
 */
#include "../programs/subjects/subject.h"

#include <pthread.h>
#include <stdlib.h>

enum { LEVELS = 6, PATHS = 1 << (2 * LEVELS), ROUNDS = 6, BASE = 10000 };

NOINLINE static void *make(unsigned number) {
    void *block = malloc(BASE + number);
    keep(block);
    return block;
}

/* The same four at each level, so that a piece of one path may stand in another. */
static void *step(unsigned number, int level);

#define STEP(n)                                                                                    \
    NOINLINE static void *step_##n(unsigned number, int level) {                                   \
        void *block = step(number, level - 1);                                                     \
        keep(block);                                                                               \
        return block;                                                                              \
    }

STEP(0)
STEP(1)
STEP(2)
STEP(3)

__attribute__((always_inline)) static inline void *step(unsigned number, int level) {
    if (level == 0) {
        return make(number);
    }
    switch (number >> (2 * level - 2) & 3) {
    case 0:
        return step_0(number, level);
    case 1:
        return step_1(number, level);
    case 2:
        return step_2(number, level);
    default:
        return step_3(number, level);
    }
}

/* Some of it stays, and each path is taken twice in a row now and then. */
NOINLINE static void *work(void *argument) {
    for (unsigned i = 0; i < ROUNDS * PATHS; i++) {
        unsigned number = i * 2654435761u >> 7 & (PATHS - 1);
        for (unsigned again = i % 3; again < 3; again++) {
            void *block = step(number, LEVELS);
            check(block != NULL, "memory");
            if (i % 16 != 0) {
                free(block);
            }
        }
    }
    return argument;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
    say("all done\n");
    return 3;
}
