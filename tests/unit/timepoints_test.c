/* SPDX-License-Identifier: MIT */
/* timepoints_test.c: analyze/profile/timepoints.c: a long life in few points, none of its peaks
 * lost.
 */
#include "analyze/profile/timepoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct memtrace_point point(uint64_t time_ns, uint64_t live_bytes) {
    return (struct memtrace_point){.time_ns = time_ns, .live_bytes = live_bytes};
}

static uint64_t highest_of(const struct model *model) {
    uint64_t highest = 0;
    for (size_t i = 0; i < model->timeline_count; i++) {
        uint64_t live = model->timeline[i].live_bytes;
        assert_true(i == 0 || model->timeline[i].time_ns > model->timeline[i - 1].time_ns);
        highest = live > highest ? live : highest;
    }
    return highest;
}

static void long_lives_keep_their_peaks(void **state) {
    const uint64_t tick = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    (void)state;
    for (uint64_t ticks = 1; ticks < 100000; ticks *= 7) {
        struct timepoints points;
        struct model model = {0};
        timepoints_start(&points);
        for (uint64_t i = 0; i < ticks; i++) {
            struct memtrace_point highest = point(i * tick + 1, i == ticks / 3 ? 1000 : 10 + i % 7);
            struct memtrace_point last = point(i * tick + 2, 5);
            timepoints_add(&points, i * tick, &highest, &last);
        }
        timepoints_finish(&points, &model, NULL, 0);
        assert_uint_in_range(model.timeline_count, 2, 2 * TIMEPOINTS_PIECES);
        assert_true(ticks < 2000 || model.timeline_count >= TIMEPOINTS_PIECES / 2);
        assert_int_equal(highest_of(&model), 1000);
    }
}

/* Samples tell what was resident at the points, too. */
static void samples_between(void **state) {
    struct memtrace_point samples[2] = {point(50, 1), point(150, 1)};
    struct memtrace_point highest = point(100, 9);
    struct memtrace_point last = point(120, 2);
    struct timepoints points;
    struct model model = {0};
    (void)state;
    samples[0].resident_bytes = 7;
    samples[1].resident_bytes = 8;
    timepoints_start(&points);
    timepoints_add(&points, 0, &highest, &last);
    timepoints_finish(&points, &model, samples, 2);
    assert_int_equal(model.timeline_count, 4);
    assert_int_equal(model.timeline[1].live_bytes, 9);
    assert_int_equal(model.timeline[1].resident_bytes, 7);
    assert_int_equal(model.timeline[3].resident_bytes, 8);
}

/* A profile without samples has three points, allocations as if they came evenly. */
static void ends_and_maximum(void **state) {
    struct model model = {.now_ns = 1000, .to_ns = UINT64_MAX};
    (void)state;
    model.totals = (struct model_totals){.maximum_ns = 250,
                                         .maximum_bytes = 4096,
                                         .live_bytes = 12,
                                         .allocations = 40,
                                         .total_bytes = 8000};
    timepoints_complete(&model, 0, UINT64_MAX, 3);
    assert_int_equal(model.timeline_count, 3);
    assert_int_equal(model.timeline[0].live_bytes, 3);
    assert_int_equal(model.timeline[1].time_ns, 250);
    assert_int_equal(model.timeline[1].live_bytes, 4096);
    assert_int_equal(model.timeline[1].alloc_count, 10);
    assert_int_equal(model.timeline[2].time_ns, 1000);
    assert_int_equal(model.timeline[2].live_bytes, 12);
    assert_int_equal(model.timeline[2].alloc_bytes, 8000);
}

/* Where nobody knows when the maximum was: about when most was sampled. */
static void maximum_of_unknown_time(void **state) {
    struct model model = {.now_ns = 1000, .to_ns = UINT64_MAX, .timeline_count = 2};
    (void)state;
    model.timeline = job_array(2, sizeof *model.timeline);
    assert_non_null(model.timeline);
    model.timeline[0] = point(100, 50);
    model.timeline[1] = point(200, 40);
    model.totals.maximum_bytes = 60;
    timepoints_complete(&model, 0, UINT64_MAX, 0);
    assert_int_equal(model.timeline_count, 4);
    assert_int_equal(model.timeline[1].live_bytes, 60);
    assert_int_equal(highest_of(&model), 60);
}

/* A program that lived for a moment: one sample, or two of which one is just behind the other. The
 * maximum has the time that was told, not one before the program began. */
static void maximum_of_a_moment(void **state) {
    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        struct model model = {.now_ns = 101, .to_ns = UINT64_MAX, .timeline_count = count};
        uint64_t end_ns = 99 + count;
        model.timeline = job_array(count, sizeof *model.timeline);
        assert_non_null(model.timeline);
        model.timeline[0] = point(100, 5);
        model.timeline[count - 1] = point(end_ns, 5);
        model.totals = (struct model_totals){.maximum_ns = end_ns, .maximum_bytes = 60};
        timepoints_put_maximum(&model);
        assert_int_equal(model.timeline_count, count);
        assert_int_equal(model.timeline[0].time_ns, 100);
        assert_int_equal(model.timeline[count - 1].time_ns, end_ns);
        assert_int_equal(model.timeline[count - 1].live_bytes, 60);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lives_keep_their_peaks),
        cmocka_unit_test(samples_between),
        cmocka_unit_test(ends_and_maximum),
        cmocka_unit_test(maximum_of_unknown_time),
        cmocka_unit_test(maximum_of_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
