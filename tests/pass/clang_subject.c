/* SPDX-License-Identifier: MIT */
/*
 * clang_subject.c: C as compilers seldom see it, for clang_pass.py. Each function does something
 * odd with its frame or its calls, allocates below it, and prints what it computed.
 */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static long *volatile kept; /* or the allocation would be optimised away */

NOINLINE static long cell(long value) {
    kept = malloc(sizeof *kept);
    *kept = value;
    value = *kept + 1;
    free(kept);
    return value;
}

long (*volatile indirect)(long) = cell;

NOINLINE long plain(long a, long b) {
    return cell(a) * 3 + cell(b);
}

/* Nothing here may allocate: no word. */
NOINLINE static size_t pure(const char *text) {
    return strlen(text) * 2;
}

NOINLINE size_t uses_pure(const char *text) {
    return pure(text) + 1;
}

NOINLINE static long even(long n);
NOINLINE static long odd(long n) {
    return n == 0 ? 0 : even(n - 1) + 1;
}

/* Recursion that never allocates. */
NOINLINE static long even(long n) {
    return n == 0 ? 1 : odd(n - 1) + 1;
}

/* Leaves its frame: a jump when optimised, then without a word. */
NOINLINE long tail_call(long value) {
    return indirect(value + 5);
}

NOINLINE long tail_call_of_other_type(int value, int other) {
    return value > other ? indirect(value) : 4;
}

NOINLINE long recursive(long depth) {
    return depth == 0 ? cell(depth) : recursive(depth - 1) + cell(depth);
}

NOINLINE long variable_length(int count) {
    long array[count];
    for (int i = 0; i < count; i++) {
        array[i] = cell(i);
    }
    char *more = alloca((size_t)count + 1);
    memset(more, 'x', (size_t)count);
    more[count] = 0;
    return array[count - 1] + (long)strlen(more);
}

NOINLINE long aligned(long value) {
    _Alignas(64) volatile long variable = value;
    variable = cell(variable);
    return variable + (long)((uintptr_t)&variable % 64);
}

NOINLINE long variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += cell(va_arg(list, long));
    }
    va_end(list);
    return sum;
}

static jmp_buf buffer;

NOINLINE static void jump(long value) {
    longjmp(buffer, (int)cell(value));
}

NOINLINE long jumped_to(long value) {
    volatile long tries = 0;
    const int back = setjmp(buffer);
    if (back < 5) {
        tries = tries + 1;
        jump(back);
    }
    return tries + cell(value) + back;
}

/* A little machine: computed goto. */
NOINLINE long interpreted(const char *code) {
    static const void *const labels[] = {&&stop, &&add, &&allocate};
    long value = 0;
    goto *labels[*code++ - '0'];
add:
    value += 3;
    goto *labels[*code++ - '0'];
allocate:
    value += cell(value);
    goto *labels[*code++ - '0'];
stop:
    return value;
}

NOINLINE long assembly_goto(long value) {
    __asm__ goto("testq %0, %0; js %l1" : : "r"(value) : "cc" : negative);
    return cell(value);
negative:
    return -cell(-value);
}

/* Calls where the compiler does not know: no word, which could lie below the stack pointer. */
NOINLINE long assembly_call(long value) {
    long result;
    __asm__("leaq -128(%%rsp), %%rsp; call *%2; leaq 128(%%rsp), %%rsp"
            : "=a"(result), "+D"(value)
            : "b"(indirect)
            : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
              "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
              "xmm13", "xmm14", "xmm15");
    return result;
}

__attribute__((naked, noinline)) long naked(long value) {
    __asm__("subq $8, %rsp; call cell_for_assembly; addq $8, %rsp; ret");
}

__attribute__((used)) long cell_for_assembly(long value) {
    return cell(value);
}

__attribute__((always_inline)) inline static long always_inlined(long value) {
    return cell(value) * 2;
}

/* Most calls of it return at once. */
NOINLINE long seldom(long value) {
    if (__builtin_expect(value < 1000, 1)) {
        return value;
    }
    return cell(value) + cell(value + 1);
}

struct large {
    long values[40];
};

NOINLINE struct large by_value(struct large in) {
    in.values[7] = cell(in.values[7]);
    return in;
}

NOINLINE double floating(double x, float y) {
    return (double)cell((long)x) * (double)y;
}

NOINLINE __int128 wide(__int128 value) {
    return value * cell(3);
}

int main(void) {
    struct large large = {{0}};
    large.values[7] = 41;
    printf("%ld %zu %ld\n", plain(1, 2), uses_pure("four"), even(10));
    printf("%ld %ld %ld\n", tail_call(1), tail_call_of_other_type(2, 1), recursive(50));
    printf("%ld %ld %ld\n", variable_length(20), aligned(8), variadic(3, 1L, 2L, 3L));
    printf("%ld %ld %ld\n", jumped_to(4), interpreted("1221210"), assembly_goto(-9));
    printf("%ld %ld %ld\n", assembly_call(30), naked(31), always_inlined(32));
    printf("%ld %ld\n", seldom(4), seldom(4000));
    printf("%ld %.1f %ld\n", by_value(large).values[7], floating(2.5, 2.0F), (long)wide(9));
    return 0;
}
