/* SPDX-License-Identifier: MIT */
/* copied.c: an allocator of which the compiler makes a copy for the calls that tell the same kind,
 * if it is asked to (gcc: -fipa-cp-clone). Prints nothing. */
#include <stddef.h>

static char memory[1 << 16];
static size_t used;

__attribute__((noinline)) void *copied_take(int kind, size_t size) {
    size_t step = 16;
    for (int i = 0; i < kind; i++) {
        step += size >> i;
    }
    used += (step + 15) & ~(size_t)15;
    return memory + used;
}

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 20; i++) {
        copied_take(1, 40);
    }
    for (int i = 0; i < 5; i++) {
        copied_take(argc + i, 8);
    }
    return 0;
}
