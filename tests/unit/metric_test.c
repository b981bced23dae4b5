/* SPDX-License-Identifier: MIT */
/* metric_test.c: analyze/report/metric: which number of a model each metric has. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/report/metric.h"

static void errors_of_totals(void **state) {
    struct model model = {
        .recording.errors = {
            .total_bytes = 1, .allocations = 2, .live_bytes = 3, .maximum_bytes = 4}};
    (void)state;
    assert_true(metric_error(METRIC_CUMULATIVE, &model) == 1);
    assert_true(metric_error(METRIC_ALLOCATIONS, &model) == 2);
    assert_true(metric_error(METRIC_LEAKED, &model) == 3);
    assert_true(metric_error(METRIC_MAXIMUM, &model) == 4);
    assert_true(metric_error(METRIC_TEMPORARY, &model) == 0);
}

static void totals(void **state) {
    const struct model model = {.totals = {.maximum_bytes = 1,
                                           .live_bytes = 2,
                                           .live_blocks = 3,
                                           .total_bytes = 4,
                                           .allocations = 5,
                                           .temporary = 6}};
    (void)state;
    assert_int_equal(metric_total(METRIC_MAXIMUM, &model).main, 1);
    assert_int_equal(metric_total(METRIC_LEAKED, &model).main, 2);
    assert_int_equal(metric_total(METRIC_CUMULATIVE, &model).main, 4);
    assert_int_equal(metric_total(METRIC_ALLOCATIONS, &model).main, 5);
    assert_int_equal(metric_total(METRIC_TEMPORARY, &model).main, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_of_totals),
                                       cmocka_unit_test(totals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
