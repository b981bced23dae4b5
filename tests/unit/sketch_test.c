/* SPDX-License-Identifier: MIT */
/* sketch_test.c: analyze/blocks/sketch against sorted values. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/blocks/sketch.h"

#include <stdlib.h>

enum { VALUES = 5000 };

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int ascending(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Buckets follow each other without gaps, each no wider than a part of its values. */
static void buckets(void **state) {
    (void)state;
    for (uint32_t index = 0; index < 960; index++) {
        uint64_t least = sketch_least(index);
        uint64_t most = sketch_most(index);
        assert_true(least <= most);
        assert_true((most - least) << SKETCH_BITS <= least);
        if (index != 0) {
            assert_true(sketch_most(index - 1) + 1 == least);
        }
    }
    assert_true(sketch_least(0) == 0);
}

static void check(const uint64_t *sorted, size_t count, const struct sketch *sketch) {
    static const double percents[] = {0, 1, 25, 50, 90, 99, 99.9, 100};
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        size_t place = 0;
        uint64_t told = sketch_percentile(sketch, percents[i]);
        while ((double)(place + 1) < (double)count * percents[i] / 100) {
            place++;
        }
        assert_true(told >= sorted[place]);
        assert_true(told - sorted[place] <= sorted[place] >> SKETCH_BITS);
    }
    assert_true(sketch->least == sorted[0]);
    assert_true(sketch->most == sorted[count - 1]);
    assert_true(sketch_percentile(sketch, 100) == sorted[count - 1]);
}

static void percentiles(void **state) {
    static uint64_t values[VALUES];
    (void)state;
    for (uint64_t round = 1; round < 20; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        size_t count = 1 + (size_t)(next(&seed) % VALUES);
        struct sketch sketch = {0};
        for (size_t i = 0; i < count; i++) {
            values[i] = next(&seed) >> (next(&seed) % 64);
            assert_int_equal(sketch_add(&sketch, values[i], 1), 0);
        }
        qsort(values, count, sizeof values[0], ascending);
        assert_true(sketch.count == count);
        check(values, count, &sketch);
        sketch_free(&sketch);
    }
}

static void weights(void **state) {
    struct sketch sketch = {0};
    (void)state;
    assert_true(sketch_percentile(&sketch, 50) == 0);
    assert_int_equal(sketch_add(&sketch, 7, 0), 0);
    assert_true(sketch.size == 0);
    sketch_add(&sketch, UINT64_MAX, 1);
    sketch_add(&sketch, 10, 98);
    sketch_add(&sketch, 20, 1);
    assert_true(sketch_percentile(&sketch, 98) == 10);
    assert_true(sketch_percentile(&sketch, 99) == 20);
    assert_true(sketch_percentile(&sketch, 99.5) == UINT64_MAX);
    sketch_free(&sketch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(buckets), cmocka_unit_test(percentiles),
                                       cmocka_unit_test(weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
