/* SPDX-License-Identifier: MIT */
/* Tests of runtime/record/region.c: the tables of threads and of foreign frees. */
#include "runtime/record/region.h"

#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 600 };

static struct region *open_region(void) {
    struct region *region = calloc(1, sizeof *region);
    assert_non_null(region);
    region->space = space_fixture_open();
    region->space->header->thread_count = MEMTRACE_THREAD_OTHERS + 1;
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
        record->counts.alloc_bytes = 10;
        record->counts.alloc_count = 1;
        record->counts.free_bytes = 4;
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
    struct memtrace_thread_record third = {.id = 3}, fourth = {.id = 4};
    (void)state;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t owner = 1; owner < OWNERS; owner++) {
            region_note_foreign_free(region, leaves, &third, owner, owner, 1);
        }
    }
    region_note_foreign_free(region, others, &fourth, 9, 1000, 1);
    assert_int_equal(region_visit_foreign_frees(region, 3, sum_up, seen), OWNERS - 1);
    for (uint32_t owner = 1; owner < OWNERS; owner++) {
        assert_int_equal(seen[owner], 1);
    }
    assert_int_equal(region_visit_foreign_frees(region, 5, sum_up, seen), 0);
    close_region(region);
}

static uint64_t count_segments(const struct region *region, uint32_t kind) {
    const struct memtrace_segment *segment;
    uint64_t at = MEMTRACE_HEADER_SIZE, count = 0;
    while ((segment = space_next(region->space, &at, region->space->header->end)) != NULL) {
        count += segment->kind == kind;
    }
    return count;
}

/* One thread after another: each id is used as often as the next, and what it adds comes on top. */
static void ids_are_used_again(void **state) {
    struct region *region = open_region();
    struct memtrace_foreign_frees *leaves[16];
    struct memtrace_point sum;
    uint32_t most = 0;
    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct memtrace_thread_record *record = region_add_thread(region, 1);
        assert_non_null(record);
        assert_int_not_equal(record->id, MEMTRACE_THREAD_OTHERS);
        assert_int_equal(record->end_ns, 0);
        assert_string_equal(record->name, "");
        strcpy(record->name, "last");
        most = record->id > most ? record->id : most;
        record->counts.alloc_bytes += 10;
        record->counts.alloc_count++;
        record->counts.free_bytes += 4;
        memset(leaves, 0, sizeof leaves);
        region_note_foreign_free(region, leaves, record, 1 + record->id % 200, 2, 1);
        region_end_thread(region, record);
    }
    assert_uint_in_range(most, 1, REGION_THREADS_FRESH);
    assert_true(count_segments(region, MEMTRACE_SEGMENT_FREES) <= REGION_THREADS_FRESH);
    for (uint32_t place = region_next_thread(region, 0); place != 0;
         place = region_next_thread(region, place)) {
        struct memtrace_thread_record *record = region_thread(region, place);
        if (record->state != MEMTRACE_THREAD_FREE) {
            assert_int_equal(record->counts.alloc_count, record->earlier + 1);
            assert_uint_in_range(record->earlier, 4, 5);
        }
    }
    region_totals(region, &sum);
    assert_int_equal(sum.alloc_bytes, 200000);
    assert_int_equal(sum.alloc_count, 20000);
    assert_int_equal(sum.live_bytes, 120000);
    close_region(region);
}

/* More alive than there are ids: each has a record of its own, which serves again afterwards. */
static void more_alive_than_ids(void **state) {
    enum { ALIVE = 6000 };
    static struct memtrace_thread_record *records[ALIVE];
    struct region *region = open_region();
    struct memtrace_point sum;
    uint32_t highest = 0;
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ALIVE; i++) {
            records[i] = region_add_thread(region, 1);
            assert_non_null(records[i]);
            assert_int_equal(records[i]->state, MEMTRACE_THREAD_ALIVE);
            records[i]->counts.alloc_count++;
            assert_true(records[i]->id <= REGION_THREAD_LIMIT);
            if (records[i]->place > REGION_THREAD_LIMIT) {
                assert_int_equal(records[i]->id, MEMTRACE_THREAD_OTHERS);
            }
            if (round == 0) {
                highest = records[i]->place > highest ? records[i]->place : highest;
            }
            assert_true(records[i]->place <= highest);
        }
        for (uint32_t i = 0; i < ALIVE; i++) {
            assert_int_equal(records[i]->state, MEMTRACE_THREAD_ALIVE); /* nobody else's */
            region_end_thread(region, records[i]);
        }
    }
    region_totals(region, &sum);
    assert_int_equal(sum.alloc_count, 2 * ALIVE);
    close_region(region);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_have_records),
        cmocka_unit_test(foreign_frees),
        cmocka_unit_test(ids_are_used_again),
        cmocka_unit_test(more_alive_than_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
