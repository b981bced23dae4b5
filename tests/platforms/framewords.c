/* SPDX-License-Identifier: MIT */
/*
 * framewords.c: whether the runtime finds and uses the frame words of MODE pass on AArch64, for
 * foreign.py. Functions with frames of several kinds allocate; then each looks in its own code for
 * what tells its word's place, and reads the word: a walk must have noted a context there, another
 * one for another caller. Ends with 1 and a line where that is not so.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline))

enum { LONGEST_FUNCTION = 400, CONTEXTS = 1 << 24 };

/* The word that this instruction has as its operand; size_log2: the unit of its distance. */
static const uint32_t *operand(uint32_t code, int size_log2, uintptr_t fp, uintptr_t sp) {
    uintptr_t base = (code >> 5 & 31) == 31 ? sp : fp;
    int32_t distance = (int32_t)(code << 11) >> 23; /* nine bits from bit 12 on */
    if (code >> 24 & 1) {
        distance = (int32_t)(code >> 10 & 0xfff) << size_log2;
    }
    return (const uint32_t *)(base + (uintptr_t)(intptr_t)distance);
}

/* GCC's: str wzr, [sp|x29, #n]; mov wzr, #0x5a17. Clang's: prfm plil3keep, [sp|x29, #n]. */
static KEPT uint32_t read_word(const uint32_t *code, uintptr_t fp, uintptr_t sp) {
    for (size_t i = 0; i < LONGEST_FUNCTION; i++) {
        uint32_t kind = code[i] & 0xfec0001f;
        if (code[i + 1] == 0x528b42ff && kind == 0xb800001f) {
            return *operand(code[i], 2, fp, sp);
        }
        if (kind == 0xf880000c) {
            return *operand(code[i], 3, fp, sp);
        }
    }
    fputs("a function has no word\n", stderr);
    exit(1);
}

#define REGISTER(name)                                                                             \
    __extension__({                                                                                \
        uintptr_t value;                                                                           \
        __asm__ volatile("mov %0, " name : "=r"(value));                                           \
        value;                                                                                     \
    })
#define READ_WORD(function)                                                                        \
    read_word((const uint32_t *)(uintptr_t)(function), REGISTER("x29"), REGISTER("sp"))

static void *volatile last;

static KEPT void allocate(void) {
    last = malloc(24);
    free(last);
}

static KEPT uint32_t small(int n) {
    allocate();
    return READ_WORD(small) + (uint32_t)(n - n);
}

static KEPT uint32_t with_text(int n) {
    volatile char text[40];
    memset((char *)text, n, sizeof text);
    allocate();
    return READ_WORD(with_text) + (uint32_t)(text[3] - n);
}

static KEPT uint32_t large(int n) {
    volatile int room[300];
    room[n] = n;
    allocate();
    return READ_WORD(large) + (uint32_t)(room[n] - n);
}

/* Keeps nothing but its return address, which is then the lowest word of the frame. */
static KEPT uint32_t bare(int n) {
    volatile char room[2000];
    room[0] = 1;
    allocate();
    return READ_WORD(bare) + (uint32_t)(room[0] - 1) + (uint32_t)(n - n);
}

static KEPT uint32_t variable(int n) {
    volatile char *room = alloca((size_t)n * 16);
    room[0] = 1;
    allocate();
    return READ_WORD(variable) + (uint32_t)(room[0] - 1);
}

static KEPT uint32_t crowded(int n) {
    volatile double in = n;
    double a = in, b = a * 3, c = b * a, d = c + b;
    long e = n * 3L, f = e * e, g = f - n, h = g ^ e;
    allocate();
    in = a + b * c - d;
    return READ_WORD(crowded) + (uint32_t)((e + f + g + h) * 0);
}

/* Whose address others see. */
static KEPT void change(volatile int *value) {
    *value += 1;
}

static KEPT uint32_t shared(int n) {
    volatile int one = n, two = n;
    change(&one);
    allocate();
    change(&two);
    return READ_WORD(shared) + (uint32_t)(one - two);
}

static const struct {
    const char *name;
    uint32_t (*function)(int);
} kinds[] = {
    {"small", small},       {"with_text", with_text}, {"large", large},   {"bare", bare},
    {"variable", variable}, {"crowded", crowded},     {"shared", shared},
};

static KEPT uint32_t first(size_t kind) {
    uint32_t word = kinds[kind].function(5);
    allocate();
    return word;
}

static KEPT uint32_t second(size_t kind) {
    uint32_t word = kinds[kind].function(6);
    allocate();
    return word;
}

static int is_left_out(const char *name, char **left_out) {
    while (*left_out != NULL && strcmp(name, *left_out) != 0) {
        left_out++;
    }
    return *left_out != NULL;
}

int main(int count, char **arguments) {
    (void)count;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (is_left_out(kinds[i].name, arguments + 1)) {
            continue;
        }
        uint32_t one = first(i);
        uint32_t two = second(i);
        if (one == 0 || two == 0 || one == two || one >= CONTEXTS || two >= CONTEXTS) {
            printf("%s has the words %#x and %#x\n", kinds[i].name, one, two);
            return 1;
        }
    }
    puts("all kinds of frames have words");
    return 0;
}
