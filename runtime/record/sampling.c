/* SPDX-License-Identifier: MIT */
/* sampling.c: the rare half of sampling, and its arithmetic, since libm is not ours. See
 * sampling.h.
 */
#include "runtime/record/sampling.h"

static const double LN_2 = 0x1.62e42fefa39efp-1;

/* Marsaglia's xorshift with three shifts: a period of 2^64 - 1, no state of 0. */
static uint64_t next_random(struct sampling *sampling) {
    uint64_t x = sampling->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sampling->random = x;
    return x * UINT64_C(0x9e3779b97f4a7c15); /* its low bits are poor */
}

void sampling_seed(struct sampling *sampling, uint64_t seed) {
    *sampling = (struct sampling){.random = seed != 0 ? seed : 1};
    for (int i = 0; i < 8; i++) { /* away from seeds with few bits */
        next_random(sampling);
    }
}

/* -ln(k / 2^53) for 1 <= k <= 2^53. ln(m) = 2 artanh((m - 1) / (m + 1)), whose series is good to
 * 1e-14 for 1/sqrt(2) < m < sqrt(2). */
static double minus_log(uint64_t k) {
    int bits = 64 - __builtin_clzll(k);
    double m = (double)k / (double)(UINT64_C(1) << (bits - 1)); /* in [1, 2) */
    int exponent = bits - 1 - 53;
    double t;
    double sum = 0;
    if (m > 1.4142135623730951) {
        m /= 2;
        exponent++;
    }
    t = (m - 1) / (m + 1);
    for (int i = 15; i >= 1; i -= 2) {
        sum = sum * t * t + 1.0 / i;
    }
    return -(exponent * LN_2 + 2 * t * sum);
}

/* 1 - exp(-x), x >= 0, to the last digits also where x is small: by a series for x / 2^n, then n
 * times 1 - (1 - y)^2 = y (2 - y). */
static double one_minus_exp(double x) {
    int halvings = 0;
    double term;
    double sum = 0;
    if (x > 40) {
        return 1;
    }
    for (; x > 0.25; x /= 2) {
        halvings++;
    }
    term = x;
    for (int i = 2; i < 14; i++) {
        sum += term;
        term *= -x / i;
    }
    for (; halvings > 0; halvings--) {
        sum = sum * (2 - sum);
    }
    return sum;
}

/* The next point lies in the byte that is so many behind: 1 is the very next one. */
static int64_t sampling_draw(struct sampling *sampling, uint64_t mean) {
    uint64_t k = (next_random(sampling) >> 11) + 1;
    double distance = minus_log(k) * (double)mean;
    return distance < 0x1p62 ? 1 + (int64_t)distance : (int64_t)1 << 62;
}

double sampling_probability(uint64_t bytes, uint64_t mean) {
    return one_minus_exp((double)bytes / (double)mean);
}

uint64_t sampling_round(struct sampling *sampling, double value) {
    uint64_t whole = (uint64_t)value;
    double part = (double)(next_random(sampling) >> 11) * 0x1p-53;
    return whole + (part < value - (double)whole);
}

uint64_t sampling_take_slow(struct sampling *sampling, uint64_t size, uint64_t mean) {
    if (sampling->mean != mean) {
        sampling->mean = mean;
        sampling->until = sampling_draw(sampling, mean);
    }
    if (sampling->until > (int64_t)size) {
        sampling->until -= (int64_t)size;
        return 0;
    }
    sampling->until = sampling_draw(sampling, mean); /* the past tells nothing of what comes */
    return (uint64_t)((double)size / sampling_probability(size, mean) + 0.5);
}
