// SPDX-License-Identifier: MIT
// clang_coroutines.cpp: a generator, for clang_pass.py; the technical specification's names where
// they are needed.
#if __has_include(<coroutine>) && !defined(OLD)
#include <coroutine>
namespace co = std;
#else
#include <experimental/coroutine>
namespace co = std::experimental;
#endif
#include <cstdio>
#include <string>
struct numbers {
    struct promise_type {
        std::string value;
        numbers get_return_object() {
            return {co::coroutine_handle<promise_type>::from_promise(*this)};
        }
        co::suspend_always initial_suspend() noexcept {
            return {};
        }
        co::suspend_always final_suspend() noexcept {
            return {};
        }
        co::suspend_always yield_value(std::string text) {
            value = text;
            return {};
        }
        void return_void() {
        }
        void unhandled_exception() {
        }
    };
    co::coroutine_handle<promise_type> handle;
};
static numbers generate(int count) {
    for (int i = 0; i < count; i++) {
        co_yield std::string(40, 'a') + std::to_string(i);
    }
}
int main() {
    numbers all = generate(5);
    while (all.handle.resume(), !all.handle.done()) {
        std::puts(all.handle.promise().value.c_str());
    }
    all.handle.destroy();
}
