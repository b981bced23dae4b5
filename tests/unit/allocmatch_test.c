/* SPDX-License-Identifier: MIT */
/* allocmatch_test.c: which names of functions a specification means. */
#include "analyze/symbol/symbol.h"
#include "collect/allocators/allocmatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool means(const char *symbol, const char *name) {
    struct allocspecs specs = {0};
    struct error error;
    char text[200];
    bool result;
    snprintf(text, sizeof text, "%s(size=1)=alloc", symbol);
    if (allocspec_add(&specs, text, &error) != 0) {
        print_error("%s\n", error.message);
        fail();
    }
    result = allocmatch_symbol(&specs.items[0], name, symbol_demangle);
    allocspec_free(&specs);
    return result;
}

static void test_names(void **state) {
    (void)state;
    assert_true(means("pool_alloc", "pool_alloc"));
    assert_true(means("pool_alloc", "pool_alloc@@POOL_1.0"));
    assert_false(means("pool_alloc", "pool_allocate"));
    assert_false(means("pool_alloc", "my_pool_alloc"));
    assert_false(means("pool_alloc", "pool_alloc.cold"));
}

static void test_demangled(void **state) {
    (void)state;
    assert_true(means("Pool::take", "_ZN4Pool4takeEm"));
    assert_true(means("_ZN4Pool4takeEm", "_ZN4Pool4takeEm"));
    assert_true(means("Pool::take(unsigned long)", "_ZN4Pool4takeEm"));
    assert_false(means("Pool::take(int)", "_ZN4Pool4takeEm"));
    assert_false(means("take", "_ZN4Pool4takeEm"));
    assert_true(means("Pool<int>::take", "_ZN4PoolIiE4takeEm"));
    assert_true(means("operator new", "_Znwm"));
}

static void test_patterns(void **state) {
    (void)state;
    assert_true(means("pool_*", "pool_alloc"));
    assert_true(means("*::take", "_ZN4Pool4takeEm"));
    assert_true(means("Pool<*>::take", "_ZN4PoolIiE4takeEm"));
    assert_true(means("p??l_alloc", "pool_alloc"));
    assert_false(means("pool_?", "pool_alloc"));
    assert_false(means("pool_*", "pool_alloc.part.0"));
}

static void test_length(void **state) {
    (void)state;
    assert_int_equal(allocmatch_length("f(int (*)(int))"), 1);
    assert_int_equal(allocmatch_length("main"), 4);
    assert_int_equal(allocmatch_length("(anonymous namespace)::f()"), 24);
}

static void test_copies(void **state) {
    (void)state;
    assert_true(allocmatch_is_copy("take.constprop.0", "take"));
    assert_true(allocmatch_is_copy("take.constprop.0.isra.0", "take"));
    assert_true(allocmatch_is_copy("_Z4takem.specialized.2", "_Z4takem"));
    assert_false(allocmatch_is_copy("take.constprop.0.cold", "take"));
    assert_false(allocmatch_is_copy("take.part.0", "take"));
    assert_false(allocmatch_is_copy("taken.constprop.0", "take"));
    assert_false(allocmatch_is_copy("take", "take"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_demangled),
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_length),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
