/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/interval.c against a plain array of pages. */
#include "runtime/heap/interval.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PAGES = 3000, EVENTS = 20000 };

struct model {
    uint32_t context[PAGES]; /* 0: free */
    uintptr_t low, high;     /* of the present removal */
    uint64_t last;           /* mappings that ended */
};

static void removed(void *argument, const struct interval *piece, int is_last) {
    struct model *model = argument;
    assert_true(piece->start < piece->end);
    assert_true(piece->start >= model->low && piece->end <= model->high);
    for (uintptr_t page = piece->start; page < piece->end; page++) {
        assert_int_equal(model->context[page], piece->context);
        model->context[page] = 0;
    }
    model->last += is_last != 0;
}

static void check_all(const struct intervals *set, const struct model *model) {
    size_t pages = 0, used = 0;
    for (size_t i = 0; i < set->count; i++) {
        assert_true(set->item[i].start < set->item[i].end);
        assert_true(i == 0 || set->item[i - 1].end <= set->item[i].start);
        for (uintptr_t page = set->item[i].start; page < set->item[i].end; page++) {
            assert_int_equal(model->context[page], set->item[i].context);
            pages++;
        }
    }
    for (size_t i = 0; i < PAGES; i++) {
        used += model->context[i] != 0;
    }
    assert_int_equal(pages, used);
}

static void equals_a_plain_array(void **state) {
    struct intervals set = {0};
    struct model *model = calloc(1, sizeof *model);
    uint64_t added = 0;
    (void)state;
    srand(1);
    for (uint32_t i = 1; i <= EVENTS; i++) {
        uintptr_t start = (uintptr_t)rand() % PAGES;
        uintptr_t end = start + 1 + (uintptr_t)rand() % (i % 50 == 0 ? 400 : 4);
        end = end < PAGES ? end : PAGES;
        model->low = start;
        model->high = end;
        interval_remove(&set, start, end, removed, model); /* as mmap over it does */
        for (uintptr_t page = start; page < end; page++) {
            assert_int_equal(model->context[page], 0);
        }
        if (i % 3 != 0) {
            assert_int_equal(interval_add(&set, (struct interval){start, end, i, 0, 0}), 0);
            for (uintptr_t page = start; page < end; page++) {
                model->context[page] = i;
            }
            added++;
        }
        if (i % 500 == 0) {
            check_all(&set, model);
        }
    }
    model->low = 0;
    model->high = PAGES;
    interval_remove(&set, 0, PAGES, removed, model);
    assert_int_equal(set.count, 0);
    assert_int_equal(model->last, added); /* each mapping ended once, whatever holes it had */
    free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
