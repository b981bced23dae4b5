/* SPDX-License-Identifier: MIT */
/* Tests of runtime/record/sampling.c: estimates have the true sums as their means, and scatter as
 * much as their error bars say. */
#include "runtime/record/sampling.h"

#include "runtime/heap/estimates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SEEDS = 1000, ALLOCATIONS = 3000, MEAN = 4096 };

static uint64_t size_of(uint32_t i) {
    static const uint64_t sizes[] = {1, 16, 24, 100, 512, 1024, 4096, 10000, 100000};
    return sizes[i * 2654435761u % (sizeof sizes / sizeof sizes[0])];
}

static int is_near(double value, double wanted, double share) {
    double off = value > wanted ? value - wanted : wanted - value;
    return off <= wanted * share;
}

/* Of allocations of one size, as many are taken as the formula says, for what they stand for. */
static void one_size(uint64_t size, double probability) {
    struct sampling sampling;
    uint64_t weight = 0;
    uint32_t taken = 0;
    uint32_t rounds = 400000;
    sampling_seed(&sampling, 12345 + size);
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t one = sampling_take(&sampling, size, MEAN);
        taken += one != 0;
        weight = one != 0 ? one : weight;
    }
    assert_true(is_near((double)weight, (double)size / probability, 1e-4));
    assert_true(is_near(taken, rounds * probability, probability < 0.01 ? 0.08 : 0.01));
}

static void probabilities(void **state) {
    (void)state;
    one_size(16, 0.003898635876);
    one_size(409, 0.095034187); /* a tenth of the mean */
    one_size(4096, 0.632120559);
    one_size(40960, 0.999954600);
    one_size(4096000, 1);
}

static void estimates_are_unbiased(void **state) {
    double truth = 0;
    double sum = 0;
    double squares = 0;
    double told = 0; /* variance by the estimates themselves */
    double blocks = 0;
    (void)state;
    for (uint32_t i = 0; i < ALLOCATIONS; i++) {
        truth += (double)size_of(i);
    }
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct sampling sampling;
        double estimate = 0;
        sampling_seed(&sampling, seed);
        for (uint32_t i = 0; i < ALLOCATIONS; i++) {
            double size = (double)size_of(i);
            double weight = (double)sampling_take(&sampling, size_of(i), MEAN);
            estimate += weight;
            if (weight > 0) {
                told += weight * (weight - size) / SEEDS;
                blocks += weight / size / SEEDS;
            }
        }
        sum += estimate / SEEDS;
        squares += (estimate - truth) * (estimate - truth) / SEEDS;
    }
    /* Four standard errors of the mean of 1,000. */
    assert_true((sum - truth) * (sum - truth) < 16 * squares / SEEDS);
    assert_true(is_near(told, squares, 0.2));
    assert_true(is_near(blocks, ALLOCATIONS, 0.05));
}

/* As profiles do it: a block of s bytes is s + 1 long, stands for s / p bytes in 1 / p blocks, both
 * rounded by chance. Of 1,000 seeds 95 % of the intervals that an estimate itself tells hold the
 * truth, for bytes and for blocks. */
static void intervals_hold_the_truth(void **state) {
    enum { BLOCKS = 4000 };
    double truth = 0;
    double off_bytes = 0;
    double off_count = 0;
    uint32_t bytes_inside = 0;
    uint32_t count_inside = 0;
    (void)state;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        truth += (double)(size_of(i) + 64);
    }
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct sampling sampling;
        double bytes = -truth;
        double count = -BLOCKS;
        double bytes_variance = 0;
        double count_variance = 0;
        sampling_seed(&sampling, seed);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            uint64_t size = size_of(i) + 64;
            if (sampling_take(&sampling, size + 1, MEAN) != 0) {
                double p = sampling_probability(size + 1, MEAN);
                uint64_t rounded = sampling_round(&sampling, (double)size / p);
                struct variance variance = estimates_variance(size, rounded, p);
                assert_true(is_near((double)rounded, (double)size / p, 0.02));
                bytes += (double)rounded;
                count += (double)sampling_round(&sampling, 1 / p);
                bytes_variance += variance.bytes;
                count_variance += variance.count;
            }
        }
        bytes_inside += bytes * bytes < 1.96 * 1.96 * bytes_variance;
        count_inside += count * count < 1.96 * 1.96 * count_variance;
        off_bytes += bytes / sqrt(bytes_variance) / SEEDS;
        off_count += count / sqrt(count_variance) / SEEDS;
    }
    assert_uint_in_range(bytes_inside, 920, 980); /* 950, deviation 7 */
    assert_uint_in_range(count_inside, 920, 980);
    assert_true(off_bytes < 0.15 && off_bytes > -0.15); /* 0, deviation 0.032 */
    assert_true(off_count < 0.15 && off_count > -0.15);
}

/* The rounded numbers have the mean that was asked for. */
static void rounding(void **state) {
    struct sampling sampling;
    uint64_t sum = 0;
    (void)state;
    sampling_seed(&sampling, 3);
    for (int i = 0; i < 100000; i++) {
        uint64_t rounded = sampling_round(&sampling, 1.25);
        assert_uint_in_range(rounded, 1, 2);
        sum += rounded;
    }
    assert_uint_in_range(sum, 124300, 125700); /* deviation 137 */
    assert_int_equal(sampling_round(&sampling, 7), 7);
}

static void nothing_of_no_bytes(void **state) {
    struct sampling sampling;
    (void)state;
    sampling_seed(&sampling, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sampling_take(&sampling, 0, 1), 0);
    }
}

/* Switched while running: the new mean counts at once. */
static void another_mean(void **state) {
    struct sampling sampling;
    uint32_t taken = 0;
    (void)state;
    sampling_seed(&sampling, 9);
    for (uint32_t i = 0; i < 1000; i++) {
        taken += sampling_take(&sampling, 16, UINT64_C(1) << 40) != 0;
    }
    assert_int_equal(taken, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        taken += sampling_take(&sampling, 16, 16) != 0;
    }
    assert_uint_in_range(taken, 550, 720); /* 632, deviation 15 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities),
        cmocka_unit_test(estimates_are_unbiased),
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(rounding),
        cmocka_unit_test(nothing_of_no_bytes),
        cmocka_unit_test(another_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
