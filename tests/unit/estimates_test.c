/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/estimates.c: sums lie in the space that they are added to, those of a
 * forked child in its own; the variance of a block is that of the textbook. */
#include "runtime/heap/estimates.h"
#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* NULL: it has none. */
static const struct memtrace_estimate *find(const struct space *space, uint32_t context) {
    const struct memtrace_segment *segment;
    uint64_t at = MEMTRACE_HEADER_SIZE;
    while ((segment = space_next(space, &at, space->header->end)) != NULL) {
        if (segment->kind == MEMTRACE_SEGMENT_ESTIMATES &&
            segment->index == context / MEMTRACE_LEAF_ITEMS) {
            return (const struct memtrace_estimate *)(const void *)segment + /* 0 lies under it */
                   context % MEMTRACE_LEAF_ITEMS;
        }
    }
    return NULL;
}

static void sums_of_a_fork(void **state) {
    static const uint32_t contexts[] = {3, 5 * MEMTRACE_LEAF_ITEMS + 7};
    struct space *parent = space_fixture_open();
    struct space *child = space_fixture_open();
    const struct variance variance = {.bytes = 8, .count = 2};
    (void)state;
    for (int i = 0; i < 2; i++) {
        estimates_add(parent, contexts[i], variance);
        estimates_free(parent, contexts[i], 4);
    }
    estimates_fork();
    for (int i = 0; i < 2; i++) {
        const struct memtrace_estimate *of_parent = find(parent, contexts[i]);
        const struct memtrace_estimate *of_child;
        estimates_add(child, contexts[i], variance);
        estimates_add(child, contexts[i], variance);
        of_child = find(child, contexts[i]);
        assert_non_null(of_parent);
        assert_non_null(of_child);
        assert_true(of_parent->total_variance == 8 && of_parent->freed_variance == 4 &&
                    of_parent->count_variance == 2 && of_parent->samples == 1);
        assert_true(of_child->total_variance == 16 && of_child->freed_variance == 0 &&
                    of_child->count_variance == 4 && of_child->samples == 2);
    }
    estimates_fork();
    space_fixture_close(parent);
    space_fixture_close(child);
}

/* One of 100 bytes that was picked with 1/4 stands for 400: s^2 (1 - p) / p^2. */
static void variances(void **state) {
    struct variance variance = estimates_variance(100, 400, 0.25);
    (void)state;
    assert_true(variance.bytes == 100.0 * 100 * 0.75 / (0.25 * 0.25));
    assert_true(variance.count == 0.75 / (0.25 * 0.25));
    assert_true(estimates_variance_of(100, 100) == 0 && estimates_variance_of(100, 99) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_a_fork),
        cmocka_unit_test(variances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
