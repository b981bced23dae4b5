/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/remembered.c and of the guards' unwind table, as our own interpreter reads
 * it.
 */
#include "tests/unit/walk_fixture.h"

#include "runtime/stack/guard.h"
#include "runtime/stack/step.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void stands_for_one_address(void **state) {
    uintptr_t guard = guard_for(0x1234);
    (void)state;
    assert_int_not_equal(guard, 0);
    assert_true(guard_is(guard));
    assert_int_equal(guard_see_through(guard), 0x1234);
    assert_int_equal(guard_for(0x1234), guard);
    assert_int_not_equal(guard_for(0x1235), guard);
    assert_int_equal(guard_see_through(0x1234), 0x1234);
    assert_false(guard_is(guard_see_through((uintptr_t)memtrace_guard - 1)));
    assert_false(
        guard_is((uintptr_t)memtrace_guard + (uintptr_t)MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL));
}

static void leads_on_by_its_unwind_table(void **state) {
    uintptr_t guard = guard_for((uintptr_t)leads_on_by_its_unwind_table + 1);
    uintptr_t stack[4] = {0};
    struct frame from = {.pc = guard, .slot = (uintptr_t)&stack[1], .fp = 77};
    struct frame to;
    (void)state;
    assert_int_equal(step(&rules, &walker.stack, rule_find(&rules, guard), &from, &to),
                     STEP_UNSURE);
    assert_int_equal(to.pc, (uintptr_t)leads_on_by_its_unwind_table + 1);
    assert_int_equal(to.fp, 77);
    /* Nothing was popped: the "call" of a guard left nothing on the stack. */
    assert_int_equal(to.slot, (uintptr_t)&stack[1]);
}

/* Returning by a guard is returning to what it stands for. */
static __attribute__((noinline)) long returns_by_guard(void) {
    uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
    uintptr_t guard = guard_for(*slot);
    assert_int_not_equal(guard, 0);
    *slot = guard;
    return 4711;
}

static void returns_to_its_address(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(returns_by_guard(), 4711);
    }
}

static void says_when_it_is_full(void **state) {
    size_t refused = 0;
    (void)state;
    for (uintptr_t pc = 0x10000; pc < 0x10000 + 2 * MACHINE_GUARD_COUNT; pc++) {
        uintptr_t guard = guard_for(pc);
        refused += guard == 0;
        assert_true(guard == 0 || guard_see_through(guard) == pc);
    }
    assert_true(refused >= MACHINE_GUARD_COUNT);
    assert_int_equal(guard_see_through(guard_for(0x1234)), 0x1234);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stands_for_one_address),
        cmocka_unit_test(leads_on_by_its_unwind_table),
        cmocka_unit_test(returns_to_its_address),
        cmocka_unit_test(says_when_it_is_full),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
