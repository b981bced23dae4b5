/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/cfi.c: what it computes, and that it reads only what is there. */
#include "runtime/stack/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/machine/machine.h"

enum { DEREFERENCE = 0x06, CONSTANT = 0x0e, PLUS = 0x22, PLUS_CONSTANT = 0x23, LITERAL = 0x30 };
enum { BASE_REGISTER = 0x70 };

static struct expression_machine machine(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return (struct expression_machine){.pc = 0x401000, .sp = here, .fp = here + 64};
}

static void arithmetic(void **state) {
    const uint8_t expression[] = {
        5, BASE_REGISTER + MACHINE_DWARF_FP, 0x78, LITERAL + 3, PLUS_CONSTANT, 1};
    const uint8_t unknown[] = {1, 0xff};
    const uint8_t empty_stack[] = {1, PLUS};
    struct expression_machine now = machine();
    uintptr_t result;
    (void)state;
    assert_int_equal(expression_evaluate(expression, &now, NULL, &result), 0);
    assert_int_equal(result, 4);
    assert_int_not_equal(expression_evaluate(unknown, &now, NULL, &result), 0);
    assert_int_not_equal(expression_evaluate(empty_stack, &now, NULL, &result), 0);
}

/* The word at this address, by an expression. */
static int read_by_expression(uintptr_t address, uintptr_t *result) {
    uint8_t expression[11] = {10, CONSTANT};
    struct expression_machine now = machine();
    memcpy(expression + 2, &address, sizeof address);
    expression[10] = DEREFERENCE;
    return expression_evaluate(expression, &now, NULL, result);
}

/* A part of a word, as the guards' unwind table asks for it. */
static void dereferences_parts(void **state) {
    enum { DEREFERENCE_SIZE = 0x94 };
    static _Alignas(8) const uint32_t pair[2] = {0x11223344, 0xfedcba98};
    uintptr_t address = (uintptr_t)&pair[1];
    uint8_t expression[12] = {11, CONSTANT};
    struct expression_machine now = machine();
    uintptr_t result = 0;
    (void)state;
    memcpy(expression + 2, &address, sizeof address);
    expression[10] = DEREFERENCE_SIZE;
    expression[11] = 4;
    assert_int_equal(expression_evaluate(expression, &now, NULL, &result), 0);
    assert_int_equal(result, pair[1]);
    expression[11] = 8;
    assert_int_not_equal(expression_evaluate(expression, &now, NULL, &result), 0);
    expression[11] = 0;
    assert_int_not_equal(expression_evaluate(expression, &now, NULL, &result), 0);
}

static void dereferences_what_is_there(void **state) {
    static uintptr_t word = 4711;
    uintptr_t on_stack = 4712;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t result = 0;
    (void)state;
    assert_int_equal(read_by_expression((uintptr_t)&word, &result), 0);
    assert_int_equal(result, 4711);
    assert_int_equal(read_by_expression((uintptr_t)&on_stack, &result), 0);
    assert_int_equal(result, 4712);
    mprotect(page + 4096, 4096, PROT_NONE);
    assert_int_equal(read_by_expression((uintptr_t)page + 4088, &result), 0);
    assert_int_not_equal(read_by_expression((uintptr_t)page + 4092, &result), 0);
    assert_int_not_equal(read_by_expression((uintptr_t)page + 4096, &result), 0);
    assert_int_not_equal(read_by_expression(0, &result), 0);
    assert_int_not_equal(read_by_expression(UINT64_C(1) << 63, &result), 0);
    munmap(page, 8192);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(dereferences_parts),
        cmocka_unit_test(dereferences_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
