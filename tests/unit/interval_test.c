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

struct check {
    const struct model *model;
    size_t ranges, pages;
    uintptr_t last; /* the end of the range before */
};

static void check_range(void *argument, struct interval *range) {
    struct check *check = argument;
    assert_true(range->start < range->end);
    assert_true(check->last <= range->start);
    for (uintptr_t page = range->start; page < range->end; page++) {
        assert_int_equal(check->model->context[page], range->context);
        check->pages++;
    }
    check->last = range->end;
    check->ranges++;
}

static void check_all(const struct intervals *set, const struct model *model) {
    struct check check = {.model = model};
    size_t used = 0;
    interval_visit(set, check_range, &check);
    for (size_t i = 0; i < PAGES; i++) {
        used += model->context[i] != 0;
    }
    assert_int_equal(check.pages, used);
    assert_int_equal(check.ranges, set->count);
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

struct inherited {
    uint64_t bytes, mappings; /* of those that the parent made */
    uint64_t own;             /* pieces of others */
};

static void count_inherited(void *argument, const struct interval *piece, int is_last) {
    struct inherited *gone = argument;
    if (piece->is_inherited) {
        gone->bytes += piece->end - piece->start;
        gone->mappings += is_last != 0;
    } else {
        gone->own++;
    }
}

/* A child unmaps the middle of what its parent mapped, then each end: all of it is inherited. */
static void a_hole_in_an_inherited_one(void **state) {
    struct intervals set = {0};
    struct inherited gone = {0};
    (void)state;
    assert_int_equal(interval_add(&set, (struct interval){100, 200, 7, 0, 1}), 0);
    interval_remove(&set, 140, 160, count_inherited, &gone);
    assert_int_equal(set.count, 2);
    assert_true(gone.bytes == 20 && gone.mappings == 0 && gone.own == 0);
    interval_remove(&set, 160, 200, count_inherited, &gone);
    assert_true(gone.bytes == 60 && gone.own == 0);
    interval_remove(&set, 100, 140, count_inherited, &gone);
    assert_true(gone.bytes == 100 && gone.mappings == 1 && gone.own == 0);
    assert_int_equal(set.count, 0);
}

enum { MANY = 60000 };

static void count_piece(void *argument, const struct interval *piece, int is_last) {
    (void)is_last;
    *(uint64_t *)argument += piece->end - piece->start;
}

/* Upwards, downwards, and in an order without any; then again while the set grows smaller. */
static void holds_many(void **state) {
    static const uintptr_t steps[] = {1, MANY - 1, 7919}; /* prime to MANY, so each comes once */
    (void)state;
    for (size_t order = 0; order < sizeof steps / sizeof *steps; order++) {
        struct intervals set = {0};
        uint64_t gone = 0;
        for (uintptr_t i = 0, at = 0; i < MANY; i++, at = (at + steps[order]) % MANY) {
            struct interval range = {at * 4, at * 4 + 3, (uint32_t)at, 0, 0};
            assert_int_equal(interval_add(&set, range), 0);
        }
        assert_int_equal(set.count, MANY);
        for (uintptr_t i = 0, at = 0; i < MANY; i++, at = (at + steps[order]) % MANY) {
            interval_remove(&set, at * 4, at * 4 + 3, count_piece, &gone);
            assert_int_equal(gone, (i + 1) * 3);
        }
        assert_int_equal(set.count, 0);
        assert_int_equal(set.blocks, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_a_plain_array),
        cmocka_unit_test(a_hole_in_an_inherited_one),
        cmocka_unit_test(holds_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
