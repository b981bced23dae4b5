/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/ledger.c and peak.c together: costs per context, and what each context held
 * when the whole held most, against a plain model. */
#include "runtime/heap/ledger.h"

#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CONTEXTS = 40, BLOCKS = 300, EVENTS = 50000 };

static uint64_t at_peak(const struct memtrace_cell *cell, uint32_t epoch) {
    int present = epoch % 2 == 1 || cell->peak_epoch != epoch;
    return present ? cell->alloc_bytes - cell->free_bytes : (uint64_t)cell->saved_live;
}

/* One writer: everything is exact, in a column of one's own as in the shared one. */
static void equals_a_plain_model(int is_shared) {
    struct space *space = space_fixture_open();
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct ledger_column *column, *written;
    struct memtrace_counts counts = {0};
    struct peak_share share;
    uint64_t held[CONTEXTS] = {0}, best[CONTEXTS] = {0}, total = 0, maximum = 0, sum = 0;
    struct {
        uint64_t size;
        uint32_t context;
    } blocks[BLOCKS] = {{0, 0}};
    uint32_t seed = 7;
    assert_int_equal(ledger_init(ledger, space), 0);
    column = is_shared ? ledger->proxy : ledger_adopt(ledger);
    assert_non_null(column);
    written = is_shared ? ledger->shared : column;
    peak_join(&share, space->header, &counts, PEAK_ALONE);
    for (int i = 0; i < EVENTS; i++) {
        uint32_t place;
        struct ledger_event event = {0};
        seed = seed * 1664525u + 1013904223u;
        place = (seed >> 8) % BLOCKS;
        if (blocks[place].size == 0) {
            event.size = blocks[place].size = 1 + (seed >> 20);
            event.context = blocks[place].context = MEMTRACE_FIRST_CONTEXT + seed % CONTEXTS;
            ledger_alloc(ledger, column, &event);
            counts.alloc_bytes += event.size;
            peak_grow(&share, space->header, peak_live(&counts));
            held[event.context - MEMTRACE_FIRST_CONTEXT] += event.size;
            total += event.size;
        } else {
            event.size = blocks[place].size;
            event.context = blocks[place].context;
            counts.free_bytes += event.size;
            peak_shrink(&share, space->header, peak_live(&counts), event.size);
            ledger_free(ledger, column, &event);
            held[event.context - MEMTRACE_FIRST_CONTEXT] -= event.size;
            total -= event.size;
            blocks[place].size = 0;
        }
        if (total > maximum) {
            maximum = total;
            memcpy(best, held, sizeof best);
        }
    }
    peak_flush(&share, space->header);
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        const struct memtrace_cell *cell = ledger_cell(written, MEMTRACE_FIRST_CONTEXT + i);
        assert_int_equal(cell->alloc_bytes - cell->free_bytes, held[i]);
        sum += at_peak(cell, space->header->peak_epoch);
        assert_int_equal(at_peak(cell, space->header->peak_epoch), best[i]);
    }
    assert_int_equal(sum, maximum);
    assert_int_equal(space->header->maximum_bytes, maximum);
    assert_int_equal(space->header->live_bytes, total);
    free(ledger);
    space_fixture_close(space);
}

static void a_column_equals_a_plain_model(void **state) {
    (void)state;
    equals_a_plain_model(0);
}

/* What a thread writes for which no column is left. */
static void the_shared_column_does_too(void **state) {
    (void)state;
    equals_a_plain_model(1);
}

/* A dead thread's column goes to the next new thread as it is. */
static void columns_are_adopted(void **state) {
    struct space *space = space_fixture_open();
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct ledger_column *first, *second;
    struct ledger_event event = {.context = 1030, .size = 100};
    (void)state;
    assert_int_equal(ledger_init(ledger, space), 0);
    first = ledger_adopt(ledger);
    ledger_alloc(ledger, first, &event);
    second = ledger_adopt(ledger);
    assert_ptr_not_equal(first, second);
    ledger_release(ledger, first);
    assert_ptr_equal(ledger_adopt(ledger), first);
    assert_int_equal(ledger_cell(first, 1030)->alloc_bytes, 100);
    free(ledger);
    space_fixture_close(space);
}

static uint64_t count_segments(const struct space *space, uint32_t kind, uint64_t *bytes) {
    const struct memtrace_segment *segment;
    uint64_t at = MEMTRACE_HEADER_SIZE, count = 0;
    while ((segment = space_next(space, &at, space->header->end)) != NULL) {
        count += segment->kind == kind;
        *bytes += segment->kind == kind ? segment->size : 0;
    }
    return count;
}

/* A thread with few contexts costs pages, one with many opens leaves; what is open stays. */
static void few_cells_take_few_pages(void **state) {
    enum { FEW = 10, THREADS = 20, MANY = 3000 };
    struct space *space = space_fixture_open();
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct ledger_column *column[THREADS];
    uint64_t bytes = 0;
    (void)state;
    assert_int_equal(ledger_init(ledger, space), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        column[i] = ledger_adopt(ledger);
        for (uint32_t event = 0; event < 3 * FEW; event++) {
            struct ledger_event few = {.context = 2000 + event % FEW, .size = 10};
            ledger_alloc(ledger, column[i], &few);
            ledger_free(ledger, column[i], &few);
        }
    }
    assert_true(count_segments(space, MEMTRACE_SEGMENT_CELLS, &bytes) <= 2 * THREADS);
    count_segments(space, MEMTRACE_SEGMENT_LIFETIMES, &bytes);
    assert_true(bytes / THREADS <= 12 << 10);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t id = MEMTRACE_FIRST_CONTEXT; id < MANY; id++) {
            struct ledger_event event = {.context = id, .size = id};
            if (id % MEMTRACE_LEAF_ITEMS >= MEMTRACE_FIRST_CONTEXT) {
                ledger_alloc(ledger, column[THREADS - 1], &event);
            }
        }
    }
    bytes = 0;
    assert_true(count_segments(space, MEMTRACE_SEGMENT_CELLS, &bytes) <=
                2 * THREADS + LEDGER_FEW_GROUPS);
    for (uint32_t id = MEMTRACE_FIRST_CONTEXT; id < MANY; id++) {
        if (id % MEMTRACE_LEAF_ITEMS >= MEMTRACE_FIRST_CONTEXT) {
            const struct memtrace_cell *cell = ledger_cell(column[THREADS - 1], id);
            uint64_t few = id >= 2000 && id < 2000 + FEW ? 3 : 0;
            assert_int_equal(cell->alloc_count, 2 + few);
            assert_int_equal(cell->alloc_bytes, 2 * (uint64_t)id + 10 * few);
            assert_int_equal(cell->free_count, few);
        }
    }
    free(ledger);
    space_fixture_close(space);
}

static void lifetime_buckets(void **state) {
    (void)state;
    assert_int_equal(ledger_lifetime_bucket(0), 0);
    assert_int_equal(ledger_lifetime_bucket(1), 1);
    assert_int_equal(ledger_lifetime_bucket(3), 1);
    assert_int_equal(ledger_lifetime_bucket(4), 2);
    assert_int_equal(ledger_lifetime_bucket(15), 2);
    assert_int_equal(ledger_lifetime_bucket(16), 3);
    assert_int_equal(ledger_lifetime_bucket(UINT32_MAX), MEMTRACE_LIFETIME_BUCKETS - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_equals_a_plain_model),
        cmocka_unit_test(the_shared_column_does_too),
        cmocka_unit_test(columns_are_adopted),
        cmocka_unit_test(few_cells_take_few_pages),
        cmocka_unit_test(lifetime_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
