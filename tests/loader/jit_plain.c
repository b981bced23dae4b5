/* SPDX-License-Identifier: MIT */
/* jit_plain.c: an ordinary program, to be run by a JIT compiler: no frame pointers, large frames.
 */
#include <stdlib.h>

__attribute__((noinline)) static void *leaf(int number) {
    void *block = malloc(70001);
    __asm__ volatile("" : : "r"(block), "r"(number) : "memory");
    return block;
}

__attribute__((noinline)) static void *middle(int number) {
    char room[300];
    __asm__ volatile("" : : "r"(room) : "memory");
    void *block = leaf(number);
    __asm__ volatile("" : : "r"(room) : "memory");
    return block;
}

int main(void) {
    for (int i = 0; i < 20; i++) {
        middle(i);
    }
    return 3;
}
