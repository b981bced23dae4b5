/* SPDX-License-Identifier: MIT */
/*
 * returns.c: values of every way to return one, through a hundred frames of which some have their
 * return addresses replaced. `returns all`; an allocation at the bottom has a size of its own.
 */
#include "depth.h"

#include <complex.h>
#include <immintrin.h>

enum { FRAMES = 100 };

NOINLINE static void take(size_t size) {
    disturb();
    keep(malloc(size));
}

/* Frame n makes its value of n, and checks the one of frame n - 1. */
#define WAY(name, type, made, same, size)                                                          \
    static inline __attribute__((always_inline)) type make_##name(int n) {                         \
        type value = made;                                                                         \
        return value;                                                                              \
    }                                                                                              \
    NOINLINE static type name(int n) {                                                             \
        if (n == 0) {                                                                              \
            take(size);                                                                            \
            return make_##name(0);                                                                 \
        }                                                                                          \
        type got = name(n - 1);                                                                    \
        type want = make_##name(n - 1);                                                            \
        check(same, #name);                                                                        \
        if (n % 8 == 0) {                                                                          \
            disturb();                                                                             \
        }                                                                                          \
        return make_##name(n);                                                                     \
    }

struct large {
    long words[40];
};
struct words {
    long first, second;
};
struct numbers {
    double first, second;
};
struct word_and_number {
    long first;
    double second;
};
struct number_and_word {
    double first;
    long second;
};
struct bytes {
    char byte[11];
};
struct long_doubles {
    long double first, second;
};
WAY(give_int, int, n * 7, got == want, 71001)
WAY(give_pointer, const char *, (const char *)0 + n * 9, got == want, 71003)
WAY(give_float, float, (float)n + 0.5f, got == want, 71005)
WAY(give_double, double, n * 1.25, got == want, 71007)
WAY(give_int128, __int128, ((__int128)n << 90) - n, got == want, 71009)
WAY(give_long_double, long double, n * 1.0L + 0x1p-60L, got == want, 71011)
WAY(give_complex_float, float complex, n + 2.0f * n * I, got == want, 71013)
WAY(give_complex_double, double complex, n - 3.0 * n * I, got == want, 71015)
WAY(give_complex_long, long double complex, n * 5.0L + n * 0.5L * I, got == want, 71017)
#define BOTH (got.first == want.first && got.second == want.second)
#define PAIR                                                                                       \
    { n, -n }
WAY(give_words, struct words, PAIR, BOTH, 71019)
WAY(give_numbers, struct numbers, PAIR, BOTH, 71021)
WAY(give_word_and_number, struct word_and_number, PAIR, BOTH, 71023)
WAY(give_number_and_word, struct number_and_word, PAIR, BOTH, 71025)
WAY(give_long_doubles, struct long_doubles, PAIR, BOTH, 71027)
#define ALL (memcmp(&got, &want, sizeof got) == 0)
WAY(give_bytes, struct bytes, {{(char)n}}, ALL, 71029)
WAY(give_large, struct large, {{n}}, ALL, 71031)
WAY(give_m128, __m128, _mm_set1_ps((float)n), ALL, 71033)

/* Called only from where the compiler may use these registers: elsewhere it returns in memory. */
#pragma GCC push_options
#pragma GCC target("avx")
WAY(give_m256, __m256, _mm256_set1_ps((float)n), ALL, 71035)
static void with_avx(void) {
    give_m256(FRAMES);
}
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
WAY(give_m512, __m512, _mm512_set1_ps((float)n), ALL, 71037)
static void with_avx512(void) {
    give_m512(FRAMES);
}
#pragma GCC pop_options

static void all(void) {
    give_int(FRAMES);
    give_pointer(FRAMES);
    give_float(FRAMES);
    give_double(FRAMES);
    give_int128(FRAMES);
    give_long_double(FRAMES);
    give_complex_float(FRAMES);
    give_complex_double(FRAMES);
    give_complex_long(FRAMES);
    give_words(FRAMES);
    give_numbers(FRAMES);
    give_word_and_number(FRAMES);
    give_number_and_word(FRAMES);
    give_long_doubles(FRAMES);
    give_bytes(FRAMES);
    give_large(FRAMES);
    give_m128(FRAMES);
    if (__builtin_cpu_supports("avx")) {
        with_avx();
    }
    if (__builtin_cpu_supports("avx512f")) {
        with_avx512();
    }
}

int main(void) {
    run_deep(all);
    say("done\n");
    return 3;
}
