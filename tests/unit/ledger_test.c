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
    struct memtrace_thread_record record = {0};
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
    peak_join(&share, space->header, &record, PEAK_ALONE);
    for (int i = 0; i < EVENTS; i++) {
        uint32_t place;
        struct ledger_event event = {0};
        seed = seed * 1664525u + 1013904223u;
        place = (seed >> 8) % BLOCKS;
        if (blocks[place].size == 0) {
            event.size = blocks[place].size = 1 + (seed >> 20);
            event.context = blocks[place].context = MEMTRACE_FIRST_CONTEXT + seed % CONTEXTS;
            ledger_alloc(ledger, column, &event);
            record.alloc_bytes += event.size;
            peak_grow(&share, space->header, peak_live(&record));
            held[event.context - MEMTRACE_FIRST_CONTEXT] += event.size;
            total += event.size;
        } else {
            event.size = blocks[place].size;
            event.context = blocks[place].context;
            record.free_bytes += event.size;
            peak_shrink(&share, space->header, peak_live(&record), event.size);
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
        cmocka_unit_test(lifetime_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
