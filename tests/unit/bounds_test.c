/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/bounds.c: which words are there, asked of the kernel. */
#define _GNU_SOURCE
#include "runtime/stack/bounds.h"

#include "runtime/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGES = 40 };

/* All there but page `gap`, if there is such a one. */
static uintptr_t map_with_gap(int gap) {
    char *start =
        mmap(NULL, PAGES * STACK_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    if (gap >= 0) {
        mprotect(start + (ptrdiff_t)gap * STACK_PAGE, STACK_PAGE, PROT_NONE);
    }
    return (uintptr_t)start;
}

static void unmap(uintptr_t start) {
    munmap((void *)start, PAGES * STACK_PAGE);
}

static void test_a_walk_asks_for_each_page(void **state) {
    uintptr_t start = map_with_gap(3);
    struct stack_bounds stack = {0};
    (void)state;
    stack_begin(&stack, start + 8);
    assert_true(stack_can_read(&stack, start + STACK_PAGE - 8));
    assert_false(stack_can_read(&stack, start + 12)); /* no word */
    assert_true(stack_can_read(&stack, start + STACK_PAGE));
    assert_true(stack_can_read(&stack, start + 2 * STACK_PAGE + 8));
    assert_false(stack_can_read(&stack, start + 3 * STACK_PAGE));
    assert_true(stack_can_read(&stack, start + 4 * STACK_PAGE));
    assert_false(stack_can_read(&stack, start + 3 * STACK_PAGE));
    /* The next one does not believe what was true then. */
    mprotect((char *)start + 4 * STACK_PAGE, STACK_PAGE, PROT_NONE);
    stack_begin(&stack, start + 8);
    assert_false(stack_can_read(&stack, start + 4 * STACK_PAGE));
    unmap(start);
}

static void test_a_stack_is_found_below_its_threads_storage(void **state) {
    uintptr_t start = map_with_gap(10);
    uintptr_t top = start + 20 * STACK_PAGE + 104;
    struct stack_bounds stack = {0};
    (void)state;
    stack_find_own(&stack, start + 9 * STACK_PAGE, (void *)top); /* a gap */
    assert_int_equal(stack.high, 0);
    stack_find_own(&stack, top + 8, (void *)top); /* above */
    assert_int_equal(stack.high, 0);
    stack_find_own(&stack, start + 18 * STACK_PAGE + 8, (void *)top);
    assert_int_equal(stack.low, start + 18 * STACK_PAGE);
    assert_int_equal(stack.high, top);
    stack_begin(&stack, start + 11 * STACK_PAGE + 16);
    assert_int_equal(stack.low, start + 11 * STACK_PAGE);
    stack_begin(&stack, start + 9 * STACK_PAGE + 16); /* beyond the gap: another stack */
    assert_int_equal(stack.low, start + 11 * STACK_PAGE);
    unmap(start);
}

static void test_a_far_stack_is_another(void **state) {
    uintptr_t start = map_with_gap(-1);
    uintptr_t top = start + (PAGES - 1) * STACK_PAGE;
    struct stack_bounds stack = {0};
    (void)state;
    stack_find_own(&stack, start + 8, (void *)top);
    assert_int_equal(stack.high, 0);
    stack_find_own(&stack, top - 8, (void *)top);
    stack_begin(&stack, start + 8);
    assert_int_equal(stack.low, top - STACK_PAGE);
    unmap(start);
}

#if defined(__x86_64__)
/* Whether these bytes end with a call. */
static int ends_with_call(const char *bytes, size_t count) {
    static char code[64];
    memset(code, 0x90, sizeof code);
    memcpy(code + 32 - count, bytes, count);
    return machine_follows_call((uintptr_t)code + 32);
}
#define CALLS(bytes) ends_with_call(bytes, sizeof bytes - 1)

static void test_what_follows_a_call(void **state) {
    (void)state;
    assert_true(CALLS("\xe8\x01\x02\x03\x04"));
    assert_true(CALLS("\xff\xd0"));                     /* call *%rax */
    assert_true(CALLS("\x41\xff\xd4"));                 /* call *%r12 */
    assert_true(CALLS("\xff\x10"));                     /* call *(%rax) */
    assert_true(CALLS("\xff\x50\x18"));                 /* call *24(%rax) */
    assert_true(CALLS("\xff\x90\x00\x01\x00\x00"));     /* call *256(%rax) */
    assert_true(CALLS("\xff\x15\x01\x02\x03\x04"));     /* call *x(%rip) */
    assert_true(CALLS("\xff\x14\xc3"));                 /* call *(%rbx,%rax,8) */
    assert_true(CALLS("\xff\x54\x24\x08"));             /* call *8(%rsp) */
    assert_true(CALLS("\xff\x94\x24\x00\x01\x00\x00")); /* call *256(%rsp) */
    assert_true(CALLS("\xff\x14\xc5\x00\x01\x00\x00")); /* call *256(,%rax,8) */
    assert_false(CALLS("\x90\x90\x90\x90\x90"));
    assert_false(CALLS("\xff\xe0"));             /* jmp *%rax */
    assert_false(CALLS("\xff\xd0\x90"));         /* a call before the last instruction */
    assert_false(CALLS("\xe9\x01\x02\x03\x04")); /* jmp */
}

static void test_a_return_slot_that_a_call_left(void **state) {
    static const char code[16] = "\x90\x90\x90\x90\x90\x90\xff\xd0";
    uintptr_t pc = (uintptr_t)code + 8;
    (void)state;
    assert_true(stack_is_called(pc, 4096 + 8));
    assert_false(stack_is_called(pc, 4096));
    assert_false(stack_is_called(pc | UINT64_C(1) << 63, 4096 + 8)); /* interrupted there */
    assert_false(stack_is_called(pc + 3, 4096 + 8));
    assert_false(stack_is_called(7, 4096 + 8)); /* nothing is before it */
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_walk_asks_for_each_page),
        cmocka_unit_test(test_a_stack_is_found_below_its_threads_storage),
        cmocka_unit_test(test_a_far_stack_is_another),
#if defined(__x86_64__)
        cmocka_unit_test(test_what_follows_a_call),
        cmocka_unit_test(test_a_return_slot_that_a_call_left),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
