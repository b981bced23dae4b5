/* SPDX-License-Identifier: MIT */
/* diffmatch_test.c: analyze/report/diffmatch.c: lines against brute force over all ways to pair. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/report/diffmatch.h"

#include <stdlib.h>

enum { MOST = 5 };

static uint64_t distance(uint64_t left, uint64_t right) {
    return left < right ? right - left : left - right;
}

/* What a way to pair is worth: how many pairs; then, less is better, how far they are apart or how
 * unevenly shifted. */
struct worth {
    size_t pairs;
    uint64_t cost;
};

static struct worth worth_of(const uint64_t *left, size_t left_count, const uint64_t *right,
                             const uint32_t *to, uint64_t tolerance) {
    struct worth worth = {0, 0};
    int64_t before = 0;
    for (size_t i = 0; i < left_count; i++) {
        int64_t shift;
        if (to[i] == DIFFMATCH_NONE) {
            continue;
        }
        shift = (int64_t)right[to[i]] - (int64_t)left[i];
        worth.pairs++;
        worth.cost += tolerance == DIFFMATCH_ANY ? (uint64_t)llabs(shift - before)
                                                 : distance(left[i], right[to[i]]);
        before = shift;
    }
    return worth;
}

/* Tries every way from the i-th line on; `next` is the first partner that is free. */
static void try_all(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint64_t tolerance, uint32_t *to, size_t i, size_t next,
                    struct worth *best) {
    if (i == left_count) {
        struct worth worth = worth_of(left, left_count, right, to, tolerance);
        if (worth.pairs > best->pairs || (worth.pairs == best->pairs && worth.cost < best->cost)) {
            *best = worth;
        }
        return;
    }
    to[i] = DIFFMATCH_NONE;
    try_all(left, left_count, right, right_count, tolerance, to, i + 1, next, best);
    for (size_t j = next; j < right_count; j++) {
        if (tolerance == DIFFMATCH_ANY || distance(left[i], right[j]) <= tolerance) {
            to[i] = (uint32_t)j;
            try_all(left, left_count, right, right_count, tolerance, to, i + 1, j + 1, best);
        }
    }
}

static void check(const uint64_t *left, size_t left_count, const uint64_t *right,
                  size_t right_count, uint64_t tolerance) {
    uint32_t to[MOST + 1];
    uint32_t tried[MOST + 1];
    struct worth best = {0, UINT64_MAX};
    struct worth got;
    int64_t last = -1;
    diffmatch_lines(left, left_count, right, right_count, tolerance, to);
    for (size_t i = 0; i < left_count; i++) {
        if (to[i] != DIFFMATCH_NONE) {
            assert_true(to[i] < right_count && (int64_t)to[i] > last);
            assert_true(tolerance == DIFFMATCH_ANY || distance(left[i], right[to[i]]) <= tolerance);
            last = to[i];
        }
    }
    try_all(left, left_count, right, right_count, tolerance, tried, 0, 0, &best);
    got = worth_of(left, left_count, right, to, tolerance);
    assert_int_equal(got.pairs, best.pairs);
    assert_int_equal(got.cost, best.cost);
}

static size_t fill(uint64_t *lines) {
    size_t count = (size_t)rand() % (MOST + 1);
    uint64_t line = 0;
    for (size_t i = 0; i < count; i++) {
        line += 1 + (uint64_t)rand() % 9;
        lines[i] = line;
    }
    return count;
}

static void against_brute_force(void **state) {
    static const uint64_t tolerances[] = {0, 1, 4, 1000, DIFFMATCH_ANY};
    (void)state;
    srand(3);
    for (size_t round = 0; round < 20000; round++) {
        uint64_t left[MOST + 1] = {0};
        uint64_t right[MOST + 1] = {0};
        size_t left_count = fill(left);
        size_t right_count = fill(right);
        check(left, left_count, right, right_count, tolerances[round % 5]);
    }
}

/* The examples of docs/diff.md: a line put in between is the new one. */
static void a_line_put_in(void **state) {
    const uint64_t before[] = {10, 20};
    const uint64_t after[] = {12, 15, 22};
    uint32_t to[3];
    (void)state;
    diffmatch_lines(before, 2, after, 3, DIFFMATCH_ANY, to);
    assert_int_equal(to[0], 0);
    assert_int_equal(to[1], 2);
    diffmatch_lines(after, 3, before, 2, DIFFMATCH_ANY, to);
    assert_int_equal(to[0], 0);
    assert_int_equal(to[1], DIFFMATCH_NONE);
    assert_int_equal(to[2], 1);
}

/* Lists too long for tables are paired by place, and nothing else changes. */
static void long_lists(void **state) {
    enum { FEW = 3000, MANY = 3001 };
    uint64_t *lines = calloc(MANY, sizeof *lines);
    uint32_t *to = calloc(MANY, sizeof *to);
    (void)state;
    assert_non_null(lines);
    assert_non_null(to);
    for (size_t i = 0; i < MANY; i++) {
        lines[i] = i;
    }
    diffmatch_lines(lines, MANY, lines, FEW, DIFFMATCH_ANY, to);
    assert_int_equal(to[FEW - 1], FEW - 1);
    assert_int_equal(to[MANY - 1], DIFFMATCH_NONE);
    diffmatch_lines(lines, MANY, lines + 1, FEW, 0, to);
    assert_int_equal(to[0], DIFFMATCH_NONE);
    assert_int_equal(to[1], 0);
    free(lines);
    free(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_brute_force),
        cmocka_unit_test(a_line_put_in),
        cmocka_unit_test(long_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
