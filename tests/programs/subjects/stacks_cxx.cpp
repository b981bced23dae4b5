// SPDX-License-Identifier: MIT
/*
 * stacks_cxx.cpp: allocations under interesting stacks, in C++, as stacks.c.
 */
#include "depth.h"

#include <algorithm>
#if __cplusplus >= 202002L
#include <coroutine>
#endif
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

NOINLINE static void take(size_t size) {
    disturb();
    void *block = std::malloc(size);
    keep(block);
}

NOINLINE static void take_new(size_t size) {
    disturb();
    keep(new char[size]);
}

namespace shapes {
struct shape {
    virtual ~shape() = default;
    virtual void draw(size_t size) = 0;
};
template <typename T> struct round : shape {
    NOINLINE void draw(size_t size) override {
        keep(new T[size / sizeof(T)]);
    }
};
} // namespace shapes

static void case_classes() {
    shapes::shape *shape = new shapes::round<short>;
    keep(shape);
    shape->draw(72002);
    delete shape;
    auto lambda = [](size_t size) { take_new(size); };
    lambda(72005);
    (void)::operator new (72007, std::align_val_t{64});
    take(72009);
}

static void case_sort() {
    std::vector<int> numbers(100);
    for (size_t i = 0; i < numbers.size(); i++) {
        numbers[i] = static_cast<int>(i * 37 % 101);
    }
    bool first = true;
    std::sort(numbers.begin(), numbers.end(), [&first](int left, int right) {
        if (first) {
            first = false;
            take(72011);
        }
        return left < right;
    });
    check(std::is_sorted(numbers.begin(), numbers.end()), "sorted");
}

static void case_string() {
    std::string text(72021 - 1, 'x'); // the block has room for the zero, too
    keep(text.data());
    std::vector<char> bytes;
    bytes.reserve(72023);
    bytes.push_back('x');
    keep(bytes.data());
    text.append(10, 'y'); // grows to twice the size: 144,041 bytes
    keep(text.data());
}

struct unwound {
    size_t size;
    ~unwound() {
        take(size);
    }
};

NOINLINE static void throw_below(int depth, size_t size) {
    unwound guard{size + static_cast<size_t>(depth) * 2};
    keep(&guard);
    if (depth == 0) {
        throw std::runtime_error("thrown");
    }
    throw_below(depth - 1, size);
    keep(&guard);
}

// Caught 0 to 4 frames up; what is allocated afterwards must stand on the right stack.
static void case_exceptions() {
    for (int depth = 0; depth <= 4; depth++) {
        try {
            throw_below(depth, 72101 + static_cast<size_t>(depth) * 20);
        } catch (const std::exception &error) {
            take(72201 + static_cast<size_t>(depth) * 2);
        }
        take(72301 + static_cast<size_t>(depth) * 2);
    }
    take_new(72401);
}

NOINLINE static void rethrow_inner() {
    try {
        throw_below(2, 72411);
    } catch (...) {
        take(72421);
        throw;
    }
}

NOINLINE static void nested() {
    try {
        rethrow_inner();
    } catch (const std::exception &) {
        take(72423);
        try {
            throw_below(1, 72431);
        } catch (const std::exception &) {
            take(72441);
        }
        take(72443);
        throw 5;
    }
}

static void case_rethrow() {
    try {
        nested();
    } catch (int) {
        take(72445);
    }
    take(72447);
}

static int throwing_compare(const void *, const void *) {
    take(72451);
    throw 7;
}

// Through frames of the C library that have no hooks.
static void case_throw_through_qsort() {
    int numbers[] = {3, 2, 1};
    try {
        qsort(numbers, 3, sizeof *numbers, throwing_compare);
    } catch (int value) {
        check(value == 7, "the value");
        take(72453);
    }
    take(72455);
}

static void case_many_throws() {
    int caught = 0;
    for (int i = 0; i < 1000; i++) {
        try {
            throw_below(3, 100);
        } catch (const std::exception &) {
            caught++;
        }
    }
    check(caught == 1000, "all caught");
    take(72461);
}

struct before_main {
    before_main() {
        take_new(72471);
    }
    ~before_main() {
        take(72473);
    }
} static_object;

static void case_static() {
    take(72475);
    static unwound function_local{72477};
    keep(&function_local);
}

struct thread_object {
    bool used = false;
    ~thread_object() {
        if (used) {
            take(72481);
        }
    }
};
static thread_local thread_object local;

static void case_thread_local() {
    std::thread([] {
        local.used = true;
        take_new(72483);
    }).join();
    take(72485);
}

#if __cplusplus >= 202002L
struct task {
    struct promise_type {
        size_t value = 0;
        task get_return_object() {
            return task{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept {
            return {};
        }
        std::suspend_always final_suspend() noexcept {
            return {};
        }
        std::suspend_always yield_value(size_t next) {
            value = next;
            return {};
        }
        void return_void() {
        }
        void unhandled_exception() {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> handle;
};

static task numbers(size_t base) {
    for (size_t i = 0; i < 3; i++) {
        take(base + i * 2);
        co_yield i;
    }
    take(base + 6);
}

NOINLINE static void resume(task &one) {
    one.handle.resume();
    take(72541);
}

static void case_coroutines() {
    task first = numbers(72501), second = numbers(72521);
    for (int i = 0; i < 3; i++) {
        first.handle.resume();
        second.handle.resume();
    }
    resume(first);
    first.handle.destroy();
    second.handle.destroy();
    take(72543);
}
#else
static void case_coroutines() {
    take(72543);
}
#endif

static const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"classes", case_classes},
    {"sort", case_sort},
    {"string", case_string},
    {"exceptions", case_exceptions},
    {"rethrow", case_rethrow},
    {"throw_through_qsort", case_throw_through_qsort},
    {"many_throws", case_many_throws},
    {"static", case_static},
    {"thread_local", case_thread_local},
    {"coroutines", case_coroutines},
};

int main(int argc, char **argv) {
    for (const auto &entry : cases) {
        if (argc > 1 && strcmp(entry.name, argv[1]) == 0) {
            run_deep(entry.run);
            say("done\n");
            return 3;
        }
    }
    return 98;
}
