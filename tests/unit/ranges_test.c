/* SPDX-License-Identifier: MIT */
/* ranges_test.c: analyze/replay/ranges against a map of pages. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/ranges.h"

#include <stdlib.h>

enum { PAGES = 256 };

struct seen {
    uint64_t bytes;
    unsigned ended;
};

static void note(void *argument, const struct range *piece, bool is_last) {
    struct seen *seen = argument;
    assert_true(piece->start < piece->end);
    seen->bytes += piece->end - piece->start;
    seen->ended += is_last;
}

static void holes(void **state) {
    struct ranges ranges = {0};
    struct seen seen = {0};
    (void)state;
    assert_int_equal(ranges_add(&ranges, (struct range){100, 200, 0, 1, false}), 0);
    ranges_remove(&ranges, 120, 130, note, &seen); /* a hole: two parts of one mapping */
    assert_int_equal(ranges.count, 2);
    ranges_remove(&ranges, 0, 100, note, &seen);
    assert_int_equal(seen.bytes, 10);
    ranges_remove(&ranges, 190, 1000, note, &seen);
    ranges_remove(&ranges, 130, 190, note, &seen);
    assert_int_equal(seen.ended, 0);
    ranges_remove(&ranges, 0, 1000, note, &seen);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.bytes, 100);
    assert_int_equal(ranges.count, 0);
    ranges_free(&ranges);
}

/* Whatever is added and removed, every page that was there is removed once, with its context. */
static void random_changes(void **state) {
    bool mapped[PAGES] = {false};
    struct ranges ranges = {0};
    (void)state;
    srand(3);
    for (int i = 0; i < 20000; i++) {
        uint64_t start = (uint64_t)rand() % PAGES;
        uint64_t end = start + 1 + (uint64_t)rand() % 16;
        struct seen seen = {0};
        uint64_t there = 0;
        end = end < PAGES ? end : PAGES;
        for (uint64_t page = start; page < end; page++) {
            there += mapped[page];
            mapped[page] = false;
        }
        assert_int_equal(ranges_remove(&ranges, start, end, note, &seen), 0);
        assert_int_equal(seen.bytes, there);
        if (rand() % 2) {
            assert_int_equal(ranges_add(&ranges, (struct range){start, end, 0, 1, false}), 0);
            for (uint64_t page = start; page < end; page++) {
                mapped[page] = true;
            }
        }
        for (size_t k = 1; k < ranges.count; k++) {
            assert_true(ranges.items[k - 1].end <= ranges.items[k].start);
        }
    }
    ranges_free(&ranges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes),
        cmocka_unit_test(random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
