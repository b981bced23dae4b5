/* SPDX-License-Identifier: MIT */
/* blockrank_test.c: analyze/blocks/detail: which few of many blocks are kept, and their order.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/blocks/detail.h"

#include <stdlib.h>

enum { BLOCKS = 6, LIMIT = 4, END_NS = 100 };

/* As replayed from a coarse recording: a second thread's blocks (places 4 to 6) come after the
 * first one's of the same window, though two of them were born earlier. */
static const struct life blocks[BLOCKS] = {
    {.birth_order = 1, .birth_ns = 10, .death_ns = 90, .size = 5},
    {.birth_order = 2, .birth_ns = 30, .death_ns = LIFE_ALIVE, .size = 9},
    {.birth_order = 3, .birth_ns = 50, .death_ns = 60, .size = 9},
    {.birth_order = 4, .birth_ns = 10, .death_ns = 20, .size = 1},
    {.birth_order = 5, .birth_ns = 20, .death_ns = 95, .size = 7},
    {.birth_order = 6, .birth_ns = 40, .death_ns = 45, .size = 8},
};

static void check(enum detail_order order, const uint64_t wanted[LIMIT]) {
    struct blockrank rank;
    struct life *found;
    size_t count;
    blockrank_start(&rank, order, LIMIT, END_NS);
    for (size_t i = 0; i < BLOCKS; i++) {
        blockrank_add(&rank, &blocks[i]);
    }
    found = blockrank_take(&rank, &count);
    assert_int_equal(count, LIMIT);
    for (size_t i = 0; i < LIMIT; i++) {
        assert_int_equal(found[i].birth_order, wanted[i]);
    }
}

/* Of equals the one that was replayed first. */
static void orders(void **state) {
    (void)state;
    check(DETAIL_LARGEST, (uint64_t[]){2, 3, 6, 5});
    check(DETAIL_OLDEST, (uint64_t[]){1, 5, 2, 3});
    check(DETAIL_FIRST, (uint64_t[]){1, 4, 5, 2});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
