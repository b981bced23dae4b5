/* SPDX-License-Identifier: MIT */
/* timeline_test.c: collect/timeline: points, thinning, sums over threads. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "collect/timeline.h"
#include "tests/unit/profile_builder.h"

#include <sys/mman.h>
#include <unistd.h>

static struct memtrace_timeline *new_timeline(void) {
    struct memtrace_timeline *timeline = calloc(1, sizeof *timeline);
    timeline->interval_ns = 100;
    return timeline;
}

static void add(struct memtrace_timeline *timeline, uint64_t time_ns) {
    struct memtrace_point point = {.time_ns = time_ns, .live_bytes = time_ns * 2};
    timeline_add(timeline, &point);
}

static void points_follow_each_other(void **state) {
    struct memtrace_timeline *timeline = new_timeline();
    (void)state;
    add(timeline, 10);
    add(timeline, 20);
    add(timeline, 20); /* does not advance */
    add(timeline, 5);
    assert_int_equal(timeline->count, 2);
    assert_int_equal(timeline->point[1].time_ns, 20);
    assert_int_equal(timeline->point[1].live_bytes, 40);
    free(timeline);
}

static void thinning_keeps_every_second(void **state) {
    struct memtrace_timeline *timeline = new_timeline();
    (void)state;
    for (uint64_t i = 1; i <= MEMTRACE_TIMELINE_POINTS; i++) {
        add(timeline, i);
    }
    assert_int_equal(timeline->count, MEMTRACE_TIMELINE_POINTS);
    assert_int_equal(timeline->interval_ns, 100);
    add(timeline, MEMTRACE_TIMELINE_POINTS + 1);
    assert_int_equal(timeline->interval_ns, 200);
    assert_int_equal(timeline->count, MEMTRACE_TIMELINE_POINTS / 2 + 1);
    assert_int_equal(timeline->point[0].time_ns, 2);
    assert_int_equal(timeline->point[1].time_ns, 4);
    assert_int_equal(timeline->point[timeline->count - 1].time_ns, MEMTRACE_TIMELINE_POINTS + 1);
    free(timeline);
}

/* However long the program runs: bounded, sorted, from its first minutes to its last. */
static void covers_a_long_life(void **state) {
    struct memtrace_timeline *timeline = new_timeline();
    uint64_t last = 0;
    (void)state;
    for (uint64_t now = 1; now < 10000000; now += timeline->interval_ns) {
        add(timeline, now);
        last = now;
    }
    assert_uint_in_range(timeline->count, MEMTRACE_TIMELINE_POINTS / 3, MEMTRACE_TIMELINE_POINTS);
    assert_uint_in_range(timeline->point[0].time_ns, 1, 2 * timeline->interval_ns);
    assert_int_equal(timeline->point[timeline->count - 1].time_ns, last);
    for (uint32_t i = 1; i < timeline->count; i++) {
        assert_true(timeline->point[i].time_ns > timeline->point[i - 1].time_ns);
        assert_true(timeline->point[i].time_ns - timeline->point[i - 1].time_ns <=
                    2 * timeline->interval_ns);
    }
    free(timeline);
}

static void sums_threads(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_point point = {0};
    struct profile *profile;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", NULL);
    assert_non_null(profile);
    timeline_sum(profile, &point);
    assert_int_equal(point.alloc_count, 8);
    assert_int_equal(point.alloc_bytes, 1550);
    assert_int_equal(point.live_bytes, 1300);
    profile_close(profile);
    free(builder);
}

static void maps_for_writing(void **state) {
    struct builder *builder = builder_new();
    char path[] = "/tmp/timeline_test-XXXXXX";
    struct memtrace_timeline *timeline;
    struct memtrace_timeline again;
    struct profile *profile;
    uint64_t size;
    int fd = mkstemp(path);
    (void)state;
    builder_example(builder, 0x10000000);
    assert_int_equal(write(fd, builder->bytes, builder_size(builder)), builder_size(builder));
    profile = profile_open(path, NULL);
    assert_non_null(profile);
    timeline = timeline_map(profile, fd, &size);
    assert_non_null(timeline);
    assert_int_equal(timeline->count, 3);
    add(timeline, 40);
    munmap(timeline, size);
    for (size_t i = 0; i < profile->segment_count; i++) {
        if (profile->segments[i].kind == MEMTRACE_SEGMENT_TIMELINE) {
            assert_int_equal(pread(fd, &again, sizeof again, (off_t)profile->segments[i].offset),
                             sizeof again);
            assert_int_equal(again.count, 4);
        }
    }
    profile_close(profile);
    close(fd);
    unlink(path);
    free(builder);
}

static void resident(void **state) {
    (void)state;
    assert_uint_in_range(timeline_resident(getpid()), 64 * 1024, UINT64_C(1) << 40);
    assert_int_equal(timeline_resident(999999999), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_follow_each_other), cmocka_unit_test(thinning_keeps_every_second),
        cmocka_unit_test(covers_a_long_life),       cmocka_unit_test(sums_threads),
        cmocka_unit_test(maps_for_writing),         cmocka_unit_test(resident),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
