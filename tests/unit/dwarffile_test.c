/* SPDX-License-Identifier: MIT */
/*
 * dwarffile_test.c: analyze/symbol/dwarffile.c: address ranges that nest. Names and lines are
 * symbol_test.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/symbol/dwarffile.h"

#include <stdlib.h>
#include <string.h>

static void finds_the_innermost_first(void **state) {
    (void)state;
    struct rangetable table = {0};
    rangetable_add(&table, 10, 100, 1, 0);
    rangetable_add(&table, 20, 30, 2, 0);
    rangetable_add(&table, 20, 25, 3, 0);
    rangetable_add(&table, 40, 40, 4, 0);
    rangetable_seal(&table);
    assert_int_equal(table.count, 3);
    const struct range *range = rangetable_find(&table, 22, NULL);
    assert_int_equal(range->value, 3);
    range = rangetable_find(&table, 22, range);
    assert_int_equal(range->value, 2);
    range = rangetable_find(&table, 22, range);
    assert_int_equal(range->value, 1);
    assert_null(rangetable_find(&table, 22, range));
    assert_int_equal(rangetable_find(&table, 99, NULL)->value, 1);
    assert_null(rangetable_find(&table, 100, NULL));
    assert_null(rangetable_find(&table, 9, NULL));
}

static void prefers_the_lower_rank(void **state) {
    (void)state;
    struct rangetable table = {0};
    for (uint64_t rank = 0; rank < 3; rank++)
        rangetable_add(&table, 5, 9, rank, (rank + 1) % 3);
    rangetable_seal(&table);
    assert_int_equal(rangetable_find(&table, 5, NULL)->rank, 0);
}

/* Against a search through all ranges. */
static void agrees_with_a_plain_search(void **state) {
    (void)state;
    struct rangetable table = {0};
    srand(7);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t low = (uint64_t)rand() % 1000;
        rangetable_add(&table, low, low + (uint64_t)rand() % 60, i, 0);
    }
    rangetable_seal(&table);
    for (uint64_t address = 0; address < 1100; address++) {
        size_t all = 0, found = 0;
        for (size_t i = 0; i < table.count; i++)
            all += table.ranges[i].low <= address && address < table.ranges[i].high;
        for (const struct range *r = NULL; (r = rangetable_find(&table, address, r));)
            found++;
        assert_int_equal(found, all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_innermost_first),
        cmocka_unit_test(prefers_the_lower_rank),
        cmocka_unit_test(agrees_with_a_plain_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
