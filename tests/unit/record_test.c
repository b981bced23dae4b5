/* SPDX-License-Identifier: MIT */
/* Tests of runtime/record/region.c: the tables of threads and of foreign frees. */
#include "runtime/record/region.h"

#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OWNERS = 600 };

static struct region *open_region(void) {
    struct region *region = calloc(1, sizeof *region);
    assert_non_null(region);
    region->space = space_fixture_open();
    return region;
}

static void close_region(struct region *region) {
    space_fixture_close(region->space);
    free(region);
}

static void threads_have_records(void **state) {
    struct region *region = open_region();
    struct memtrace_point sum;
    uint32_t last = 0;
    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        struct memtrace_thread_record *record = region_add_thread(region, i);
        assert_true(record->id > last);
        assert_int_not_equal(record->id % REGION_THREADS_PER_LEAF, 0);
        assert_ptr_equal(region_thread(region, record->id), record);
        assert_int_equal(record->column, i);
        record->alloc_bytes = 10;
        record->alloc_count = 1;
        record->free_bytes = 4;
        last = record->id;
    }
    region_totals(region, &sum);
    assert_int_equal(sum.alloc_bytes, 3000);
    assert_int_equal(sum.alloc_count, 300);
    assert_int_equal(sum.live_bytes, 1800);
    close_region(region);
}

static void sum_up(uint32_t owner, uint64_t blocks, uint64_t bytes, void *argument) {
    uint64_t *seen = argument;
    assert_int_equal(blocks, 2);
    assert_int_equal(bytes, 2 * (uint64_t)owner);
    seen[owner]++;
}

static void foreign_frees(void **state) {
    struct region *region = open_region();
    struct memtrace_foreign_frees *leaves[16] = {NULL}, *others[16] = {NULL};
    uint64_t seen[OWNERS] = {0};
    (void)state;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t owner = 1; owner < OWNERS; owner++) {
            region_note_foreign_free(region, leaves, 3, owner, owner, 1);
        }
    }
    region_note_foreign_free(region, others, 4, 9, 1000, 1);
    assert_int_equal(region_visit_foreign_frees(region, 3, sum_up, seen), OWNERS - 1);
    for (uint32_t owner = 1; owner < OWNERS; owner++) {
        assert_int_equal(seen[owner], 1);
    }
    assert_int_equal(region_visit_foreign_frees(region, 5, sum_up, seen), 0);
    close_region(region);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_have_records),
        cmocka_unit_test(foreign_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
