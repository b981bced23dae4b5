/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/trail.h: a trail holds only if every word on it is what it was. */
#include "runtime/stack/trail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 8 };

static struct trails trails;
static uintptr_t stack[WORDS];

static struct frame from_here(uintptr_t fp) {
    return (struct frame){.pc = 0x401000, .slot = (uintptr_t)stack, .fp = fp};
}

/* Over all words of the stack but the first, in which it starts. */
static struct walk_trail *keep(const struct frame *from) {
    struct walk_trail *trail = trail_begin(&trails, from);
    for (size_t i = 1; i < WORDS; i++) {
        assert_true(trail_add(trail, (uintptr_t)&stack[i]));
    }
    trail->from.pc = from->pc;
    return trail;
}

static int fill_stack(void **state) {
    (void)state;
    memset(&trails, 0, sizeof trails);
    for (size_t i = 0; i < WORDS; i++) {
        stack[i] = UINT64_C(0x7f0012345678) + 4096 * i;
    }
    return 0;
}

static void holds_as_long_as_nothing_changes(void **state) {
    struct frame from = from_here(1);
    struct frame other = from;
    const struct walk_trail *trail = keep(&from);
    (void)state;
    assert_true(trail_holds(trail, &from));
    other.pc++;
    assert_false(trail_holds(trail, &other));
    other = from;
    other.slot += sizeof(uintptr_t);
    assert_false(trail_holds(trail, &other));
}

static void every_bit_of_every_word_counts(void **state) {
    struct frame from = from_here(1);
    const struct walk_trail *trail = keep(&from);
    (void)state;
    for (size_t i = 1; i < WORDS; i++) {
        for (unsigned bit = 0; bit < 64; bit++) {
            stack[i] ^= UINT64_C(1) << bit;
            assert_false(trail_holds(trail, &from));
            stack[i] ^= UINT64_C(1) << bit;
        }
    }
    stack[0] = 0; /* that word is the allocation's own, which `from` tells */
    assert_true(trail_holds(trail, &from));
}

static void the_frame_pointer_counts_where_it_was_used(void **state) {
    struct frame from = from_here(1);
    struct frame other = from_here(2);
    struct walk_trail *trail = keep(&from);
    (void)state;
    assert_true(trail_holds(trail, &other));
    trail->needs_fp = 1;
    assert_false(trail_holds(trail, &other));
    assert_true(trail_holds(trail, &from));
}

static int some_trail_holds(const struct frame *from) {
    const struct walk_trail *way = trails.way[trail_set_of(from)];
    for (size_t i = 0; i < TRAIL_WAYS; i++) {
        if (trail_holds(&way[i], from)) {
            return 1;
        }
    }
    return 0;
}

/* Three levels of calls, from two places each: all are known after a while. */
static void eight_paths_from_one_place_find_room(void **state) {
    struct frame from = from_here(1);
    int missed = 8;
    (void)state;
    for (int round = 0; round < 1000 && missed != 0; round++) {
        missed = 0;
        for (uintptr_t path = 0; path < 8; path++) {
            stack[3] = 0x401000 + path;
            if (!some_trail_holds(&from)) {
                keep(&from);
                missed++;
            }
        }
    }
    assert_int_equal(missed, 0);
}

static void long_paths_are_not_kept(void **state) {
    static uintptr_t long_stack[UINT16_MAX + 2];
    struct frame from = {.pc = 1, .slot = (uintptr_t)long_stack};
    struct walk_trail *trail = trail_begin(&trails, &from);
    (void)state;
    assert_true(trail_add(trail, (uintptr_t)&long_stack[UINT16_MAX]));
    assert_false(trail_add(trail, (uintptr_t)&long_stack[UINT16_MAX + 1]));
    for (int i = 1; i < TRAIL_MOST; i++) {
        assert_true(trail_add(trail, (uintptr_t)&long_stack[i]));
    }
    assert_false(trail_add(trail, (uintptr_t)&long_stack[1]));
}

static void paths_are_worth_keeping_the_second_time(void **state) {
    struct trail_set *set = &trails.set[0];
    (void)state;
    assert_false(trail_is_worth(set, 5));
    assert_false(trail_is_worth(set, 6));
    assert_true(trail_is_worth(set, 5));
    assert_true(trail_is_worth(set, 6));
    assert_false(trail_is_worth(set, 5 + TRAIL_SEEN));
    assert_false(trail_is_worth(set, 5));
}

static void misses_make_looking_seldom(void **state) {
    struct frame from = from_here(1);
    struct trail_set *set = &trails.set[trail_set_of(&from)];
    unsigned looked = 0;
    (void)state;
    assert_true(trail_is_seldom(set)); /* nothing is kept */
    keep(&from);
    assert_false(trail_is_seldom(set));
    for (unsigned i = 0; i < TRAIL_PATIENCE + 8 * TRAIL_SELDOM; i++) {
        looked += !trail_is_seldom(set);
        trail_is_worth(set, 7);
    }
    assert_int_equal(looked, TRAIL_PATIENCE + 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(holds_as_long_as_nothing_changes, fill_stack),
        cmocka_unit_test_setup(every_bit_of_every_word_counts, fill_stack),
        cmocka_unit_test_setup(the_frame_pointer_counts_where_it_was_used, fill_stack),
        cmocka_unit_test_setup(eight_paths_from_one_place_find_room, fill_stack),
        cmocka_unit_test_setup(long_paths_are_not_kept, fill_stack),
        cmocka_unit_test_setup(paths_are_worth_keeping_the_second_time, fill_stack),
        cmocka_unit_test_setup(misses_make_looking_seldom, fill_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
