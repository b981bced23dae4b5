/* SPDX-License-Identifier: MIT */
/* churn.c STEPS: blocks that come and go, so many that a pass over them takes its time; and one of
 * 1.2 GiB. */
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 50000 };
#define LARGE ((size_t)1200 << 20)
static void *slots[SLOTS];
static unsigned seed = 1;

static unsigned below(unsigned end) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % end;
}

__attribute__((noinline)) static void *make(void) {
    return malloc(1 + below(600));
}

int main(int argc, char **argv) {
    long steps = argc > 1 ? atol(argv[1]) : 1000;
    void *volatile huge = malloc(LARGE); /* never touched */
    if (huge == NULL) {
        return 1;
    }
    for (long i = 0; i < steps; i++) {
        void **slot = &slots[below(SLOTS)];
        if (*slot != NULL) {
            free(*slot);
            *slot = NULL;
        } else {
            *slot = make();
        }
    }
    printf("%ld steps\n", steps);
    return 0;
}
