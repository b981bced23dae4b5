/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/shadow.c: pushes and pops by stack pointer, on a made-up stack. */
#include "runtime/stack/shadow.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const uintptr_t low = 0x10000, high = 0x10000 + (64 << 20);

static uintptr_t newest(const struct shadow_stack *shadow) {
    return shadow->top == 0 ? 0 : shadow->slot[shadow->top];
}

static void push_and_pop(void **state) {
    struct shadow_stack shadow = {0};
    (void)state;
    assert_int_equal(shadow_init(&shadow, low, high), 0);
    shadow_push(&shadow, high - 64);
    shadow_push(&shadow, high - 128);
    assert_int_equal(shadow.top, 2);
    assert_int_equal(newest(&shadow), high - 128);
    /* The end of a frame forgets its context; its place goes with the next push. */
    shadow.slot[2] |= SHADOW_KNOWN;
    shadow_pop(&shadow, high - 128);
    assert_int_equal(shadow.slot[2], high - 128);
    shadow_push(&shadow, high - 112);
    assert_int_equal(shadow.top, 2);
    assert_int_equal(newest(&shadow), high - 112);
    shadow_free(&shadow);
}

/* longjmp and exceptions: functions end without a pop. The next push or pop notices. */
static void missing_pops_are_noticed(void **state) {
    struct shadow_stack shadow = {0};
    (void)state;
    assert_int_equal(shadow_init(&shadow, low, high), 0);
    for (uintptr_t i = 1; i <= 60; i++) {
        shadow_push(&shadow, high - i * 64);
    }
    shadow_push(&shadow, high - 10 * 64 - 32);
    assert_int_equal(shadow.top, 11);
    shadow_pop(&shadow, high - 2 * 64);
    assert_true(shadow.top <= 2);
    shadow_free(&shadow);
}

static void known_context_goes_with_the_push(void **state) {
    struct shadow_stack shadow = {0};
    (void)state;
    assert_int_equal(shadow_init(&shadow, low, high), 0);
    shadow_push(&shadow, high - 64);
    shadow.slot[1] |= SHADOW_KNOWN;
    shadow_push(&shadow, high - 64); /* the same place again */
    assert_int_equal(shadow.top, 1);
    assert_int_equal(shadow.slot[1], high - 64);
    shadow_free(&shadow);
}

static void grows_with_depth(void **state) {
    struct shadow_stack shadow = {0};
    enum { DEPTH = 100000 };
    (void)state;
    assert_int_equal(shadow_init(&shadow, low, high), 0);
    for (uintptr_t i = 1; i <= DEPTH; i++) {
        shadow_push(&shadow, high - i * 64);
    }
    assert_int_equal(shadow.top, DEPTH);
    for (uintptr_t i = 1; i <= DEPTH; i++) {
        assert_int_equal(shadow.slot[i], high - i * 64);
    }
    shadow_free(&shadow);
}

static void other_stacks_are_left_alone(void **state) {
    struct shadow_stack shadow = {0};
    (void)state;
    assert_int_equal(shadow_init(&shadow, low, high), 0);
    shadow_push(&shadow, high - 64);
    shadow_push(&shadow, high + 4096); /* a signal stack, a fiber */
    assert_int_equal(newest(&shadow), high - 64);
    shadow_pop(&shadow, high + 4096);
    assert_int_equal(newest(&shadow), high - 64);
    assert_int_equal(shadow.foreign, 1);
    shadow_free(&shadow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_and_pop),
        cmocka_unit_test(missing_pops_are_noticed),
        cmocka_unit_test(known_context_goes_with_the_push),
        cmocka_unit_test(grows_with_depth),
        cmocka_unit_test(other_stacks_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
