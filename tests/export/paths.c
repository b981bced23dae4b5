/* SPDX-License-Identifier: MIT */
/* paths.c: allocates on 2^DEPTH call paths, none of which calls the same function twice in a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;
static unsigned long state = 1;
static size_t sum;

static void one(int depth);
static void two(int depth);
static void three(int depth);

static void allocate(void) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    size_t size = 16 + (state >> 40) % (1 + (state >> 33) % 5000);
    kept = malloc(size);
    sum += size;
}

/* Both calls return here, so that each function stands on the stack. */
#define FUNCTION(name, left, right)                                                                \
    __attribute__((noinline)) static void name(int depth) {                                        \
        if (depth == 0) {                                                                          \
            allocate();                                                                            \
        } else {                                                                                   \
            left(depth - 1);                                                                       \
            right(depth - 1);                                                                      \
        }                                                                                          \
        __asm__ volatile("");                                                                      \
    }
FUNCTION(one, two, three)
FUNCTION(two, one, three)
FUNCTION(three, one, two)

int main(int argc, char **argv) {
    one(argc > 1 ? atoi(argv[1]) : 4);
    /* write(): it allocates nothing */
    char text[32];
    return write(1, text, (size_t)snprintf(text, sizeof text, "%zu", sum)) < 0;
}
