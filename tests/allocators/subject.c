/* SPDX-License-Identifier: MIT */
/* subject.c: a program with a pool of its own, and functions that cannot be followed. Prints how
 * much it did, by its own arithmetic: "BYTES BLOCKS FREED". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static char memory[1 << 20];
static size_t used, freed;

NOINLINE void *pool_alloc(const char *why, size_t count, size_t size) {
    size_t start = used;
    used = (used + count * size + 31) & ~(size_t)31;
    if (used > sizeof memory) {
        fprintf(stderr, "%s: the pool is full\n", why);
        exit(3);
    }
    return memory + start;
}

NOINLINE void pool_free(void *block) {
    freed++;
    if (block != NULL) {
        memset(block, 0, 1);
    }
}

/* Arguments on the stack. */
NOINLINE void *with_seven(size_t a, size_t b, size_t c, size_t d, size_t e, size_t f, size_t g) {
    return memory + (a + b + c + d + e + f + g) % 8;
}

NOINLINE void *too_short(void *block);
NOINLINE size_t jumps_to_start(size_t size);
__asm__(".text\n"
        ".globl too_short\n.type too_short, @function\n"
        "too_short: .cfi_startproc\n mov %rdi, %rax\n ret\n .cfi_endproc\n"
        ".size too_short, . - too_short\n"
        ".globl jumps_to_start\n.type jumps_to_start, @function\n"
        "jumps_to_start: .cfi_startproc\n dec %rdi\n jnz jumps_to_start\n"
        " mov %rdi, %rax\n ret\n .cfi_endproc\n"
        ".size jumps_to_start, . - jumps_to_start\n");

/* Calls pool_free() with a stack that is a multiple of 8 alone, as gcc does within a unit. */
void frees_crooked(void *block);
__asm__(".text\n"
        ".globl frees_crooked\n.type frees_crooked, @function\n"
        "frees_crooked: .cfi_startproc\n"
        " sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
        " call pool_free\n"
        " add $16, %rsp\n .cfi_adjust_cfa_offset -16\n ret\n .cfi_endproc\n"
        ".size frees_crooked, . - frees_crooked\n"
        ".globl allocates_crooked\n.type allocates_crooked, @function\n"
        "allocates_crooked: .cfi_startproc\n"
        " sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
        " call pool_alloc\n"
        " add $16, %rsp\n .cfi_adjust_cfa_offset -16\n ret\n .cfi_endproc\n"
        ".size allocates_crooked, . - allocates_crooked\n");
void *allocates_crooked(const char *why, size_t count, size_t size);

static NOINLINE void *there_twice(size_t size) {
    return memory + size % 16;
}

void *other(size_t size);

int main(void) {
    size_t bytes = 0;
    for (size_t i = 1; i <= 100; i++) {
        void *block = i % 8 < 4 ? pool_alloc("test", i, 3) : allocates_crooked("test", i, 3);
        bytes += 3 * i;
        if (i % 8 == 0) {
            pool_free(block);
        } else if (i % 4 == 0) {
            frees_crooked(block);
        }
    }
    with_seven(1, 2, 3, 4, 5, 6, 7);
    jumps_to_start(2);
    too_short(there_twice(3));
    other(2);
    printf("%zu 100 %zu\n", bytes, freed);
    return 0;
}
