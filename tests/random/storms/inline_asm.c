/* SPDX-License-Identifier: MIT */
/* inline_asm.c: assembly that calls a function which allocates, unseen by the compiler; on stack
 * memory where the last activation, called from elsewhere, was known. Built without red zone and
 * with a frame pointer, by which the frame is found while the assembly moves the stack pointer. */
#include "storm.h"

__attribute__((used, noinline)) void called_by_assembly(long round) {
    if (round % 2 == 0) {
        allocate();
    }
    if (round % 1000 == 0) {
        mark(74001);
    }
}

/* The compiler takes this for a leaf and aligns nothing, so the assembly does. */
NOINLINE static long call(long round) {
    long value = round;
    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "and $-16, %%rsp\n\t"
                     "call *%[function]\n\t"
                     "mov %%r12, %%rsp"
                     : "+D"(value)
                     : [function] "r"(called_by_assembly)
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
    return value + 1;
}

NOINLINE static long call_and_mark(long round) {
    char frame[40];
    keep(frame);
    call(round);
    if (round % 1000 < 2) {
        mark(74003);
    }
    keep(frame);
    return call(round + 1);
}

static void storm_inline_asm(long rounds) {
    long sum = 0;
    for (long round = 0; round < rounds; round++) {
        sum += round % 3 == 0 ? call(round) : call_and_mark(round);
    }
    keep(&sum);
}

int main(int argc, char **argv) {
    static const struct storm storms[] = {{"inline_asm", storm_inline_asm}};
    return storm_main(argc, argv, storms, 1);
}
