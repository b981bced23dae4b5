/* SPDX-License-Identifier: MIT */
/* shortname_test.c: analyze/model/shortname.c. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/shortname.h"

#include <string.h>

static void names(void **state) {
    static const char *const pairs[][2] = {
        {"main", "main"},
        {"", ""},
        {"parse(char const*, int)", "parse"},
        {"std::vector<int, std::allocator<int> >::push_back(int const&)",
         "std::vector<>::push_back"},
        {"std::_Rb_tree_node<int>* std::_Rb_tree<int>::_M_create_node<int&&>(int&&)",
         "std::_Rb_tree<>::_M_create_node<>"},
        {"void f<int>(int) [clone .isra.0]", "f<> [clone .isra.0]"},
        {"operator new(unsigned long)", "operator new"},
        {"std::map<int, int>::operator[](int&&)", "std::map<>::operator[]"},
        {"std::ostream& operator<< <char>(std::ostream&)", "operator<<<>"},
        {"std::string std::operator+<char, int>(char)", "std::operator+<>"},
        {"bool operator< <int>(A, A)", "operator<<>"},
        {"std::__cxx11::basic_string<char, int>::basic_string(int)", "std::string::basic_string"},
        {"A::operator->() const", "A::operator->"},
        {"A::operator()(int) const", "A::operator()"},
        {"A::operator bool() const", "A::operator bool"},
        {"(anonymous namespace)::helper(int)", "(anonymous namespace)::helper"},
        {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
        {"run(int)::{lambda()#2}::operator()() const", "run()::{lambda()#2}::operator()"},
        {"<alloc::vec::Vec<T> as core::ops::Drop>::drop",
         "<alloc::vec::Vec<> as core::ops::Drop>::drop"},
        {"core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<>"},
        {"app::main::{{closure}}", "app::main::{{closure}}"},
        {"non-virtual thunk to A::f()", "non-virtual thunk to A::f"},
        {"A::get() const", "A::get"},
        {"std::__cxx11::to_string[abi:cxx11](int)", "std::__cxx11::to_string[abi:cxx11]"},
        {"f(<", "f"},
        {"a<b<c", "a<>"},
    };
    char buffer[256];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_string_equal(shortname(pairs[i][0], buffer, sizeof buffer), pairs[i][1]);
    }
}

/* Names of any bytes, into buffers of any size. */
static void any_bytes(void **state) {
    static const char alphabet[] = "a<>(){}[] :-operator \xc3";
    unsigned random = 1;
    (void)state;
    for (int round = 0; round < 100000; round++) {
        char name[24];
        char buffer[24];
        size_t size;
        for (size_t i = 0; i < sizeof name - 1; i++) {
            random = random * 1103515245u + 12345u;
            name[i] = alphabet[(random >> 16) % (sizeof alphabet - 1)];
        }
        name[sizeof name - 1] = '\0';
        size = 1 + random % sizeof buffer;
        assert_true(strlen(shortname(name, buffer, size)) < size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(any_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
